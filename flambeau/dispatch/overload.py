"""One signature of a public function: the op it leads to, and how a call's values are bound to it.

Most calls fit plainly, and these Python itself binds, by a function of the signature's parameters
that is made at the first call (`make_fast_binder`). What it refuses, `schema.arguments.bind` looks
at, which knows PyTorch's words for what is wrong.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from keyword import iskeyword
from typing import Any, NamedTuple

from flambeau.core import devices, dtypes
from flambeau.core.op import Op
from flambeau.core.shapes import Size
from flambeau.core.tensor import Tensor, tensor_types
from flambeau.core.type_info import layout, memory_format
from flambeau.dispatch.canonical import AS_IS, FLOAT, canonical_value
from flambeau.random import Generator
from flambeau.schema.parser import Parameter
from flambeau.schema.signature import Signature


class Argument(NamedTuple):
    """One canonical argument: the parameter whose value it is (-1: a constant), and its role."""
    parameter: int
    role: int
    constant: Any = None


@dataclass(frozen=True)
class Overload:
    """One signature, the op that it leads to, and what that op's canonical arguments are; of a
    method, `parameters` has the tensor before the dot too."""
    signature: Signature
    parameters: tuple[Parameter, ...]
    arguments: tuple[Argument, ...]
    op: Op
    out: int                    # the parameter `out`; -1: it has none

    @cached_property
    def takes(self) -> range:
        """How many arguments a call may give."""
        needed = sum(p.default is None for p in self.parameters)
        return range(needed, len(self.parameters) + 1)

    @cached_property
    def unchanged(self) -> bool:
        """Are the canonical arguments what the user gave, in the same order?"""
        return (self.op.functional or self.op).declaration.canonical is None and [
            (a.parameter, a.role) for a in self.arguments] == [
            (i, AS_IS) for i in range(len(self.parameters))]

    def canonical(self, values: list[Any]) -> tuple[Any, ...]:
        if self.unchanged:
            return tuple(values)
        own = (self.op.functional or self.op).declaration.canonical
        if own is not None:
            return own(*[a.constant if a.parameter < 0 else
                         canonical_value(FLOAT, values[a.parameter], 0) if a.role == FLOAT else
                         values[a.parameter] for a in self.arguments])
        first = values[self.arguments[0].parameter] if self.arguments else None
        if isinstance(first, (list, tuple)):
            first = first[0] if first else None
        ndim = first._array.ndim if isinstance(first, Tensor) else 0
        return tuple([
            a.constant if a.parameter < 0 else values[a.parameter] if a.role == AS_IS else
            canonical_value(a.role, values[a.parameter], ndim,
                            self.parameters[a.parameter].size)
            for a in self.arguments])


# The types of values that surely fit, and need no look; of lists it is their elements that matter.
# Subclasses of Tensor, which may still be defined, fit as it does.
_SURE: dict[str, set[type] | frozenset[type]] = {
    "Tensor": tensor_types, "Scalar": frozenset({int, float, bool, complex}),
    "int": frozenset({int}), "float": frozenset({int, float}), "bool": frozenset({bool}),
    "ScalarType": frozenset({dtypes.dtype}), "Device": frozenset({devices.device}),
    "Layout": frozenset({layout}), "MemoryFormat": frozenset({memory_format}),
    "str": frozenset({str}), "Generator": frozenset({Generator})}


_LARGEST = 2 ** 63 - 1


def may_be_number(p: Parameter) -> bool:
    """May a number stand for this tensor? What is before the dot is a tensor."""
    return p.kind == "Tensor" and p.name not in ("out", "self")


def make_fast_binder(overload: Overload, numbers: bool) -> Callable[..., list[Any] | None]:
    """Binds what surely fits, by Python's own rules of calls; None for all that `bind` is to
    look at. Do `numbers` fit where tensors are wanted?"""
    parameters, defaults = overload.parameters, {}
    heads, starred = [], False
    for i, p in enumerate(parameters):
        if p.by_name and not starred:
            heads.append("*")
            starred = True
        name = f"{p.name}_" * iskeyword(p.name) or p.name
        if p.default is not None:
            defaults[f"_{i}"] = p.value
        heads.append(name if p.default is None else f"{name}=_{i}")
    names = ", ".join([head.partition("=")[0] for head in heads if head != "*"])
    made: dict[str, Any] = {}
    exec(f"def arrange({', '.join(heads)}): return [{names}]", defaults, made)   # no other source
    arrange = made["arrange"]
    checks = [(i, p.is_list, p.nullable,
               None if p.kind in ("object", "PyObject") else _SURE.get(p.kind, frozenset()),
               _SURE["Scalar"] if numbers and may_be_number(p) else frozenset(), p.value)
              for i, p in enumerate(parameters)]
    integers = [(i, p.is_list) for i, p in enumerate(parameters) if p.kind == "int"]
    scalars = [i for i, p in enumerate(parameters) if not p.is_list and (
        p.kind == "Scalar" or (numbers and may_be_number(p)))]

    def quick(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any] | None:
        try:
            values = arrange(*args, **kwargs)
        except TypeError:
            return None
        for i, is_list, nullable, sure, also, default in checks:
            value = values[i]
            if value is default or (value is None and nullable) or (
                    not is_list and (sure is None or type(value) in sure or type(value) in also)):
                continue
            if not is_list or type(value) not in (tuple, list, Size) or not sure.issuperset(
                    map(type, value)):
                return None
        for i, is_list in integers:
            value = values[i]
            if value is None:
                continue
            low, high = (min(value, default=0), max(value, default=0)) if is_list else (value,) * 2
            if high > _LARGEST or low < -_LARGEST:
                return None
        for i in scalars:
            if type(values[i]) is int and not -_LARGEST <= values[i] <= _LARGEST:
                return None
        return values
    return quick
