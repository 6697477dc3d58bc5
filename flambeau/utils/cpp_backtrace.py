"""The stack of the extension's C++ code. It is not kept."""
from __future__ import annotations

from operator import index


def get_cpp_backtrace(frames_to_skip: int = 0, maximum_number_of_frames: int = 64) -> str:
    """The frames of C++ below the caller: empty, as this is Python."""
    index(frames_to_skip), index(maximum_number_of_frames)
    return ""
