"""Sizes that may vary: their errors, their kinds and the questions asked of them.

Sizes are plain integers while a program runs or is traced, so a question about one is answered by
its value, and no size has free symbols.

>>> guard_or_false(2 == 3), statically_known_true(2 < 3), free_symbols(4)
(False, True, set())
"""
from __future__ import annotations

import dataclasses
import enum
from typing import Any

from flambeau.utils._sympy.value_ranges import ValueRanges


class GuardOnDataDependentSymNode(RuntimeError):
    """The program's course depends on a value that is not known when it is exported: that of the
    expression `cond`."""

    def __init__(self, cond: Any, *args: Any):
        super().__init__(*args)
        self.cond = cond


class ConstraintViolationError(RuntimeError):
    """An example does not fit the bounds of a dynamic size."""


class DimDynamic(enum.Enum):
    """How a dimension's size varies."""
    DYNAMIC = 0
    DUCK = 1
    STATIC = 2
    UNBACKED = 3
    INFER_STRIDE = 4


@dataclasses.dataclass(frozen=True)
class DivideByKey:
    """The key of a size that another one divides."""
    divisor: int

    def __str__(self) -> str:
        return f".__floordiv__({self.divisor})"

    def get(self, o: int) -> int:
        """The quotient."""
        return o // self.divisor


@dataclasses.dataclass(frozen=True)
class Constraint:
    warn_only: bool


@dataclasses.dataclass(frozen=True)
class StrictMinMaxConstraint(Constraint):
    """A size that must stay within `vr`."""
    vr: ValueRanges[Any]

    def render(self, source: Any) -> str:
        """As an inequality about `source`."""
        return f"{self.vr.lower} <= {source.name} <= {self.vr.upper}"


@dataclasses.dataclass(frozen=True)
class RelaxedUnspecConstraint(Constraint):
    """A size that must not be fixed."""

    def render(self, source: Any) -> str:
        return f"RelaxedUnspecConstraint({source.name})"


@dataclasses.dataclass(frozen=True)
class StatelessSymbolicContext:
    """What is said of the sizes of one tensor when it is made fake."""
    dynamic_sizes: Any
    dynamic_strides: Any = None
    constraint_sizes: Any = None
    constraint_strides: Any = None
    specialize_on: Any = None
    view_base_context: Any = None
    shape_ids: Any = None
    unbacked_bounds: Any = None

    def __post_init__(self) -> None:
        count = len(self.dynamic_sizes)
        for name, default in (("dynamic_strides", DimDynamic.INFER_STRIDE),
                              ("constraint_sizes", None), ("constraint_strides", None)):
            if getattr(self, name) is None:
                object.__setattr__(self, name, [default] * count)
        if self.specialize_on is None:
            object.__setattr__(self, "specialize_on", [[] for _ in range(count)])


class ShapeEnv:
    """Would keep the symbols of sizes; there are none here, so it can't be made."""

    def __init__(self, *, should_record_events: bool | None = None,
                 tracked_fakes: list[Any] | None = None, **kwargs: Any):
        raise NotImplementedError("ShapeEnv: flambeau has no symbols for sizes; make_fx(..., "
                                  "tracing_mode='symbolic') finds them by tracing several sizes")


def free_symbols(val: Any) -> set[Any]:
    """The symbols in sizes: none."""
    return set()


def guard_or_false(a: Any) -> bool:
    """Whether `a` holds; `False` where it can't be known."""
    return bool(a)


def guard_or_true(a: Any) -> bool:
    """Whether `a` holds; `True` where it can't be known."""
    return bool(a)


def guard_size_oblivious(expr: Any) -> bool:
    """Whether `expr` holds."""
    return bool(expr)


def statically_known_true(x: Any) -> bool:
    """Whether `x` is known to hold."""
    return bool(x)


def __getattr__(name: str) -> Any:
    if name == "SymNode":
        from flambeau.fx.experimental.sym_node import SymNode
        return SymNode
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["ShapeEnv", "StatelessSymbolicContext", "free_symbols", "guard_or_false",
           "guard_or_true", "guard_size_oblivious", "statically_known_true"]
