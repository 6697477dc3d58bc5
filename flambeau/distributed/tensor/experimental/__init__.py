"""Distributed tensors beside plain ones."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["implicit_replication"]


@contextmanager
def implicit_replication() -> Iterator[None]:
    """Let plain tensors stand beside distributed ones, as if each process had the same.

    A plain tensor beside a `DTensor` counts as replicated outside of it, too: there is nothing to
    switch on.
    """
    yield
