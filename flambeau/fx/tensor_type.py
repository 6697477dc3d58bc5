"""Types of tensors by their shapes, sizes of which may be unknown.

>>> is_consistent(TensorType((1, Dyn)), TensorType((1, 3)))
True
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class TensorType:
    """The type of tensors of a shape; `Dyn` stands for a size that is not known."""

    def __init__(self, dim: Sequence[Any]):
        self.__origin__ = TensorType
        self.__args__ = dim

    def __repr__(self) -> str:
        return f"TensorType[{self.__args__}]"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorType) and list(self.__args__) == list(other.__args__)

    def __hash__(self) -> int:
        return hash(tuple(self.__args__))

    @staticmethod
    def __class_getitem__(*args: Any) -> TensorType:
        if len(args) == 1 and isinstance(args[0], tuple):
            args = args[0]
        return TensorType(tuple(args))


class _DynType:
    """A size, or a type, that is not known."""

    def __init__(self) -> None:
        self.__name__ = "_DynType"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _DynType)

    def __hash__(self) -> int:
        return hash(_DynType)

    def __str__(self) -> str:
        return "Dyn"

    __repr__ = __str__


Dyn = _DynType()


def is_consistent(t1: Any, t2: Any) -> bool:
    """Can the two types be the same, once what is unknown is known?"""
    if t1 in (t2, Dyn) or t2 == Dyn:
        return True
    if isinstance(t1, TensorType) and isinstance(t2, TensorType):
        return len(t1.__args__) == len(t2.__args__) and all(
            map(is_consistent, t1.__args__, t2.__args__))
    return False


def is_more_precise(t1: Any, t2: Any) -> bool:
    """Does the first say all that the second says?"""
    if t1 == t2 or isinstance(t2, _DynType):
        return True
    if isinstance(t1, TensorType) and isinstance(t2, TensorType):
        return len(t1.__args__) == len(t2.__args__) and all(
            map(is_more_precise, t1.__args__, t2.__args__))
    return False


__all__ = ["Dyn", "TensorType", "is_consistent", "is_more_precise"]
