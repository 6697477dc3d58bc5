"""Calls that are made when their result is first waited for."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")
_NOT_YET: Any = object()


class _Await(Generic[T]):
    """A call that waits to be made; as an annotation, `_Await[int]`.

    >>> later = _awaitable(lambda x: x + 1, 3)
    >>> later.wait()
    4
    """

    def __init__(self, fn: Callable[..., T] | None, args: tuple[Any, ...], result: Any = _NOT_YET):
        self._fn, self._args, self._result = fn, args, result

    def fn(self) -> Callable[..., T] | None:
        """The function."""
        return self._fn

    def args(self) -> tuple[Any, ...]:
        """Its arguments."""
        return self._args

    def is_nowait(self) -> bool:
        """Was the result there from the start?"""
        return self._fn is None

    def wait(self) -> T:
        """The result, of a call that is made now if it has not been."""
        if self._result is _NOT_YET:
            self._result = self._fn(*self._args)
        return self._result

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.wait(), name)


def _awaitable(func: Callable[..., T], *args: Any, **kwargs: Any) -> _Await[T]:
    """A call that is made when its result is waited for."""
    return _Await((lambda *a: func(*a, **kwargs)) if kwargs else func, args)


def _awaitable_wait(aw: _Await[T]) -> T:
    """The result of a call."""
    return aw.wait()


def _awaitable_nowait(o: T) -> _Await[T]:
    """A value as the result of a call."""
    return _Await(None, (), o)
