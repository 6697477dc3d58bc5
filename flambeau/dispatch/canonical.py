"""Canonical arguments: what kernels and formulas get for what users pass.

Dimensions are counted from the front, lists are tuples, types are NumPy's, and whole numbers where
floats are wanted are floats. Which value becomes what follows from its type in the schema and from
the declaration, which names the dimensions:

>>> canonical_value(DIM, -1, 3), canonical_value(DIMS, [0, -1], 3), canonical_value(INTS, 2, 3, 2)
(2, (0, 2), (2, 2))
>>> canonical_value(DTYPE, flambeau.float64, 3), canonical_value(FLOAT, 1, 3)
(dtype('float64'), 1.0)

Before that the values are bound to one signature (an `Overload`). Most calls fit plainly, and these
Python itself binds, by a function of the signature's parameters that is made at the first call
(`make_fast_binder`). What it refuses, `schema.arguments.bind` looks at, which knows PyTorch's words
for what is wrong.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from keyword import iskeyword
from typing import TYPE_CHECKING, Any, NamedTuple

from flambeau.core import devices, dtypes
from flambeau.core.dtypes import as_numpy_dtype
from flambeau.core.generator import Generator
from flambeau.core.op import Op
from flambeau.core.shapes import Size, wrap_dim, wrap_dims
from flambeau.core.tensor import Tensor, tensor_types
from flambeau.core.type_info import layout, memory_format
from flambeau.schema.parser import Parameter
from flambeau.schema.signature import Signature

if TYPE_CHECKING:
    from flambeau.dispatch.declaration import Declaration

# The same numbers stand in `csrc/calling/calling.h`.
(AS_IS, DIM, NEW_DIM, DIMS, INTS, DTYPE, TENSORS, ALL_DIMS, SIZES, SOME_DIMS, EXTENTS,
 NUMBER, FLOAT) = range(13)


def role_of(parameter: Parameter, declaration: Declaration) -> int:
    """How the values of a parameter become canonical: `dims` are dimensions of the first tensor,
    `new_dims` of one that has one more, `all_dims` all of them in some order, `some_dims` maybe
    none of them; `sizes` are extents, of which those that are to be found out are left to the
    declaration's `canonical`."""
    def named(fact: str) -> bool:
        return parameter.kind == "int" and parameter.name in getattr(declaration, fact).split()

    if named("all_dims"):
        return ALL_DIMS
    if named("sizes"):
        return SIZES
    if named("some_dims"):
        return SOME_DIMS if parameter.is_list else DIM
    if named("new_dims"):
        return NEW_DIM
    if named("dims"):
        return DIMS if parameter.is_list else DIM
    if parameter.is_list:
        return TENSORS if parameter.is_tensor else INTS if parameter.kind == "int" else AS_IS
    if parameter.kind == "float":
        return FLOAT
    return DTYPE if parameter.kind == "ScalarType" and not declaration.body else AS_IS


def canonical_value(role: int, value: Any, ndim: int, size: int = 0) -> Any:
    """The canonical form of a value for a parameter of that role; None stays None.

    ndim    of the first tensor
    size    how many elements a single value of a list stands for
    """
    if value is None or role == AS_IS:
        return value
    if role == DIM:
        return wrap_dim(value, ndim)
    if role == NEW_DIM:
        return wrap_dim(value, ndim + 1)
    if role in (DIMS, SOME_DIMS):
        dims = wrap_dims(value, ndim)
        return dims if dims and ndim else () if role == SOME_DIMS else None
    if role == FLOAT:
        return float(value) if isinstance(value, int) else value
    if role == DTYPE:
        return as_numpy_dtype(value)
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * size


def with_out_dtype(out: Tensor, op: Op, canonical: tuple[Any, ...]) -> tuple[Any, ...]:
    """Canonical arguments with the type of `out` for a `dtype` that was not given."""
    own, declared = op.declaration.canonical_parameters(op.schema), op.declaration
    place, kept = [p.name for p in own].index("dtype"), declared.typed_by_out == "floating"
    if canonical[place] is not None or (kept and canonical[0].is_floating_point()
                                        and not out.is_floating_point()):
        return canonical
    found = out.dtype if op.composite else out._array.dtype
    return *canonical[:place], found, *canonical[place + 1:]


# ---- one signature -------------------------------------------------------------------------------

class Argument(NamedTuple):
    """One canonical argument: the parameter whose value it is (-1: a constant), and its role."""
    parameter: int
    role: int
    constant: Any = None


class Canonical(tuple[Any, ...]):
    """Canonical arguments that know the integers which were `given` for them, by name: what modes
    below autograd are shown has dimensions as users count them, and sizes that are left open."""

    given: dict[str, Any]


class Overload:
    """One signature, the op that it leads to, and what that op's canonical arguments are; of a
    method, `parameters` has the tensor before the dot too."""

    def __init__(self, signature: Signature, parameters: tuple[Parameter, ...],
                 arguments: tuple[Argument, ...], op: Op, out: int):
        self.signature, self.parameters, self.arguments = signature, parameters, arguments
        self.op = op
        self.out = out          # the parameter `out`; -1: it has none

    def leading_to(self, op: Op) -> Overload:
        """The same signature of another op."""
        return Overload(self.signature, self.parameters, self.arguments, op, self.out)

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

    def shown(self, canonical: tuple[Any, ...], values: list[Any]) -> Canonical:
        """Canonical arguments with what was given for them."""
        own, found = self.op.functional or self.op, Canonical(canonical)
        found.given = {}
        for a, to in zip(self.arguments, own.declaration.canonical_parameters(own.schema)):
            p = self.parameters[a.parameter]
            value = values[a.parameter] if a.parameter >= 0 else None
            if value is None:
                continue
            if p.kind == "bool" and to.kind == "Scalar":        # `unbiased` for `correction`
                found.given[to.name] = int(value)
            if to.kind == p.kind == "int" and to.is_list == p.is_list:
                if p.is_list and type(value) is int:
                    value = (value,) * (p.size or 1)
                if all(type(v) is int for v in (value if p.is_list else (value,))):
                    found.given[to.name] = list(value) if p.is_list else value
        return found


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
