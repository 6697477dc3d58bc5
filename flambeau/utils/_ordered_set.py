"""A set that keeps the order in which its elements came.

>>> OrderedSet([3, 1, 2]) & [2, 3]
OrderedSet([2, 3])
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableSet, Reversible
from collections.abc import Set as AbstractSet
from typing import Any, TypeVar

T = TypeVar("T")


class OrderedSet(MutableSet[T], Reversible[T]):
    """A set whose elements have an order. It is equal to any set of the same elements."""

    __slots__ = ("_dict",)

    def __init__(self, iterable: Iterable[T] | None = None):
        self._dict: dict[T, None] = dict.fromkeys(iterable if iterable is not None else ())

    def __contains__(self, elem: object) -> bool:
        return elem in self._dict

    def __iter__(self) -> Iterator[T]:
        return iter(self._dict)

    def __len__(self) -> int:
        return len(self._dict)

    def __reversed__(self) -> Iterator[T]:
        return reversed(self._dict)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self)})"

    def add(self, elem: T) -> None:
        """Put an element in, at the end if it is new."""
        self._dict[elem] = None

    def discard(self, elem: T) -> None:
        """Take an element out, if it is there."""
        self._dict.pop(elem, None)

    def clear(self) -> None:
        """Take everything out."""
        self._dict.clear()

    def pop(self) -> T:
        """Take the last element out."""
        if not self._dict:
            raise KeyError("pop from an empty set")
        return self._dict.popitem()[0]

    def copy(self) -> OrderedSet[T]:
        """A set of the same elements."""
        return type(self)(self)

    def update(self, *others: Iterable[T]) -> None:
        """Put in what the others have."""
        for other in others:
            self._dict.update(dict.fromkeys(other))

    def difference_update(self, *others: Iterable[T]) -> None:
        """Take out what the others have."""
        for other in others:
            for elem in list(other):
                self.discard(elem)

    def intersection_update(self, *others: Iterable[T]) -> None:
        """Keep what all others have."""
        self._dict = dict.fromkeys(self.intersection(*others))

    def union(self, *others: Iterable[T]) -> OrderedSet[T]:
        """A set of what any has."""
        made = self.copy()
        made.update(*others)
        return made

    def difference(self, *others: Iterable[T]) -> OrderedSet[T]:
        """A set of what only this one has."""
        made = self.copy()
        made.difference_update(*others)
        return made

    def intersection(self, *others: Iterable[T]) -> OrderedSet[T]:
        """A set of what all have."""
        sets = [other if isinstance(other, AbstractSet) else set(other) for other in others]
        return type(self)(elem for elem in self if all(elem in other for other in sets))

    def symmetric_difference(self, other: Iterable[T]) -> OrderedSet[T]:
        """A set of what only one of the two has."""
        other = type(self)(other)
        return self.difference(other).union(other.difference(self))

    def issubset(self, other: Iterable[Any]) -> bool:
        """Has the other all elements of this one?"""
        return self <= type(self)(other)

    def issuperset(self, other: Iterable[Any]) -> bool:
        """Has this one all elements of the other?"""
        return self >= type(self)(other)

    def __copy__(self) -> OrderedSet[T]:
        return self.copy()

    def __getstate__(self) -> list[T]:
        return list(self)

    def __setstate__(self, state: Iterable[T]) -> None:
        self._dict = dict.fromkeys(state)


__all__ = ["OrderedSet"]
