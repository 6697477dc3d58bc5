"""Ranges of numbers."""
from __future__ import annotations

import dataclasses
from typing import Any, Generic, TypeVar

_T = TypeVar("_T")


@dataclasses.dataclass(frozen=True)
class ValueRanges(Generic[_T]):
    """The numbers from `lower` to `upper`, both within.

    >>> 3 in ValueRanges(1, 4)
    True
    >>> ValueRanges(1, 4) & ValueRanges(2, 9)
    VR[2, 4]
    """
    lower: Any
    upper: Any

    def __post_init__(self) -> None:
        if self.lower > self.upper:
            raise RuntimeError(f"Invalid ranges [{self.lower}:{self.upper}]")

    def __repr__(self) -> str:
        return f"VR[{self.lower}, {self.upper}]"

    def __contains__(self, x: Any) -> bool:
        return bool(self.lower <= x <= self.upper)

    def __and__(self, other: ValueRanges[Any]) -> ValueRanges[Any]:
        return ValueRanges(max(self.lower, other.lower), min(self.upper, other.upper))

    def __or__(self, other: ValueRanges[Any]) -> ValueRanges[Any]:
        return ValueRanges(min(self.lower, other.lower), max(self.upper, other.upper))

    def is_singleton(self) -> bool:
        return bool(self.lower == self.upper)

    def issubset(self, other: ValueRanges[Any]) -> bool:
        return bool(other.lower <= self.lower and self.upper <= other.upper)
