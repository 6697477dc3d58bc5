"""`CyclingIterator`."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

__all__ = ["CyclingIterator"]

_T = TypeVar("_T")


class CyclingIterator(Iterator[_T]):
    """The items of `generator_fn(epoch)` for `n` epochs, one after the other.

    >>> list(CyclingIterator(2, lambda epoch: iter([(epoch, "a"), (epoch, "b")])))
    [(0, 'a'), (0, 'b'), (1, 'a'), (1, 'b')]
    """

    def __init__(self, n: int, generator_fn: Callable[[int], Iterator[_T]], start_epoch: int = 0):
        self._n, self._epoch, self._generator_fn = n, start_epoch, generator_fn
        self._iter = generator_fn(start_epoch)

    def __next__(self) -> _T:
        while True:
            try:
                return next(self._iter)
            except StopIteration:
                if self._epoch >= self._n - 1:
                    raise
                self._epoch += 1
                self._iter = self._generator_fn(self._epoch)
