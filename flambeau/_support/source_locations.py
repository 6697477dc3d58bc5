"""Where in the user's code something happened, for errors that come later.

A `Place` keeps a code object and the offset of an instruction; `read_place` makes a line of them
when somebody asks. Each node is one (where it was made). A counter of writes is a list `[writes,
place of the last]`. With the extension all this costs some nanoseconds; here is its twin.

    >>> bump(flambeau.ones(2)), read_place(Place())[1]
    (None, 1)
"""
from __future__ import annotations

import os
import sys
from typing import Any

from flambeau import kernels

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
native: Any = None if os.environ.get("FLAMBEAU_FAST") == "0" else kernels._native


def innermost_outside(frame: Any, folders: str | tuple[str, ...] = PACKAGE) -> Any:
    """The first frame, from this one outwards, whose code is not in these folders; None if all
    is."""
    while frame is not None and frame.f_code.co_filename.startswith(folders):
        frame = frame.f_back
    return frame


class _Place:
    """The innermost frame outside the package, when the object was made."""

    __slots__ = ("_code", "_lasti")
    _code: Any
    _lasti: int

    def __new__(cls, *args: Any) -> Any:
        self: Any = object.__new__(cls)
        if args and isinstance(args[0], _Place):        # the place of another
            self._code, self._lasti = args[0]._code, args[0]._lasti
            return self
        innermost = sys._getframe(1)
        frame = innermost_outside(innermost) or innermost
        self._code, self._lasti = frame.f_code, frame.f_lasti
        return self


def _read_place(place: Any) -> tuple[Any, int] | None:
    """The code object and the number of the line."""
    if not isinstance(place, _Place):
        return None
    code, at = place._code, place._lasti
    return code, next((n for start, end, n in code.co_lines() if n and start <= at < end), 0)


def counter_of(tensor: Any) -> list[Any]:
    """The write counter of the tensor's memory, made on first demand."""
    counter = tensor._counter
    if counter is None:
        counter = tensor._counter = [0, None]
    return counter


def memory_of(tensor: Any) -> Any:
    """What is the same object in a tensor and in others of its values and geometry: what tells
    tensors apart where the graph wraps them anew."""
    memory = getattr(tensor, "_memory", None)       # of a view whose `_array` is computed
    return tensor._array if memory is None else memory


def _bump(tensor: Any) -> None:
    """Count one write to the tensor's memory."""
    counter = counter_of(tensor)
    counter[0] += 1
    counter[1] = _Place()


def _mark_written(tensors: Any) -> None:
    """Count a write to each tensor, after a kernel has changed their arrays."""
    for tensor in tensors:
        _bump(tensor)


Place: Any
Place, read_place, bump, mark_written = (
    (_Place, _read_place, _bump, _mark_written) if native is None else
    (native.Place, native.read_place, native.bump, native.mark_written))
