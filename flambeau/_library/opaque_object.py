"""Types that ops take as they are, without looking inside.

>>> class Mesh: ...
>>> register_opaque_type(Mesh, typ="reference")
>>> is_opaque_value(Mesh()), is_opaque_value(3)
(True, False)
"""
from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any


class MemberType(enum.Enum):
    """What a tracer does with a member of an opaque object."""
    USE_REAL = "use_real"
    INLINED = "inlined"


_types: dict[type, str] = {}


def register_opaque_type(cls: Any, *, typ: str, hoist: bool = False, guard_fn: Any = None,
                         members: dict[str, MemberType] | None = None,
                         reconstruct_fn: Callable[..., Any] | None = None) -> None:
    """Let ops take objects of `cls`: `typ` is "reference" (they may change) or "value"."""
    if typ not in ("reference", "value"):
        raise AssertionError(f"Opaque type must be either 'reference' or 'value', got {typ!r}")
    if typ == "value" and cls.__eq__ is object.__eq__:
        raise TypeError(f"Value-type opaque object of type {cls} is expected to have a non-default "
                        "`__eq__` implementation")
    _types[cls] = typ


def is_opaque_type(cls: Any) -> bool:
    return isinstance(cls, type) and any(base in _types for base in cls.__mro__)


def is_opaque_value(value: object) -> bool:
    return is_opaque_type(type(value))


def is_opaque_reference_type(cls: Any) -> bool:
    """Is `cls` registered as opaque, its objects being told apart by identity?"""
    return is_opaque_type(cls) and _types.get(cls) == "reference"


def is_opaque_value_type(cls: Any) -> bool:
    """Is `cls` registered as opaque, its objects being told apart by `==`?"""
    return is_opaque_type(cls) and _types.get(cls) == "value"
