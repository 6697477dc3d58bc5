"""Marks for NVIDIA's profiler. As in PyTorch's builds for the CPU, they raise RuntimeError."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]


def _not_there(*args: Any) -> Any:
    raise RuntimeError("NVTX functions not installed. Are you sure you have a CUDA build?")


def range_push(msg: str) -> int:
    """Open a nested range."""
    return _not_there(msg)


def range_pop() -> int:
    """Close the range that was opened last."""
    return _not_there()


def range_start(msg: str) -> int:
    """Open a range that may end on another thread."""
    return _not_there(msg)


def range_end(range_id: int) -> None:
    """Close a range that `range_start` has opened."""
    _not_there(range_id)


def mark(msg: str) -> int:
    """Mark a moment."""
    return _not_there(msg)


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """A range around a block."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
