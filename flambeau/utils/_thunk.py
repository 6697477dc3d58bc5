"""Values that are computed when they are first asked for."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

R = TypeVar("R")


class Thunk(Generic[R]):
    """`Thunk(f).force()` calls `f` the first time, and gives the same result ever after."""

    __slots__ = ("f", "r")

    def __init__(self, f: Callable[[], R]):
        self.f: Callable[[], R] | None = f
        self.r: Any = None

    def force(self) -> R:
        """The value."""
        if self.f is not None:
            self.r, self.f = self.f(), None
        return self.r


__all__ = ["Thunk"]
