"""How far a pipe's iteration is."""
from enum import Enum


class _SnapshotState(Enum):
    """Whether a pipe has been iterated since it was made, or put back to where it was."""

    NotStarted = 0
    Restored = 1
    Iterating = 2
