"""Pointwise ops: element by element, on tensors and numbers that broadcast and promote.

    mul = pointwise("mul.Tensor(Tensor self, Tensor other) -> Tensor",
                    "mul.Scalar(Tensor self, Scalar other) -> Tensor",
                    kernel=kernels.multiply, numbers=True, operators="__mul__ __rmul__ __imul__",
                    d_self=lambda other: other, d_other=lambda self: self)

A rule is the derivative: what a change of that argument is multiplied by. For plain tensors
`csrc/calling/pointwise.cpp` does the same.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from operator import is_
from typing import Any

import numpy as np

from flambeau._support.c_functions import type_name
from flambeau._support.settings import warn_of_complex_half
from flambeau.core import dtypes, late_bound
from flambeau.core.autograd.formulas import infer_saved_values
from flambeau.core.autograd.recording import edges_of, record
from flambeau.core.calling import fast, overrides
from flambeau.core.calling.call import ANY, no_kernel_error
from flambeau.core.calling.overrides import intercept_canonical
from flambeau.core.devices import cpu
from flambeau.core.dtypes import FLOATING
from flambeau.core.modes import grad_enabled, interceptors
from flambeau.core.op import Op, class_name
from flambeau.core.promotion import (
    SCALARS,
    convert,
    number_of,
    promote,
    result_type,
    scalar_cache,
    scalar_operand,
)
from flambeau.core.shapes import broadcast_shapes
from flambeau.core.tensor import plain_types, tensor_types, wrap
from flambeau.dispatch.declaration import Declaration, declare
from flambeau.kernels.dtypes import round_once
from flambeau.kernels.refused import characters
from flambeau.schema.parser import Parameter, Schema


class Pointwise(Declaration):
    """What is declared of a pointwise op, beside what a `Declaration` says.

    conditions  operands that are conditions: bools, which have no part in the type of the rest
    check_conditions    raises for one that is not boolean, where that is an error
    fixed       the result has the type of the first operand, and the kernel converts the others
    inplace_check   raises for a tensor that the in-place form does not take
    check       raises for types of operands that PyTorch refuses: where they are not all the same
    check_bools     … where one of them is boolean
    check_complex   … where one of them is a complex number
    boolean     the result is True or False
    raw         the kernel takes numbers as they are given
    wraps       in the graph numbers stand for tensors without a history
    wide        numbers meet half types in float32: only the result is rounded
    default_kernel  the kernel for when all parameters that are no operands have their defaults
    refused_as  of types that are refused, by their letter, the sentence that PyTorch says in place
                of the name of its kernel, or its error, where that is a RuntimeError
    """
    kind: str = "pointwise"
    inplace: bool = True
    inplace_function: bool = True
    conditions: str = ""
    check_conditions: Any = None
    fixed: bool = False
    check: Any = None
    check_bools: Any = None
    check_complex: Any = None
    boolean: bool = False
    raw: bool = False
    wraps: bool = False
    wide: bool = False
    inplace_check: Any = None
    default_kernel: Any = None
    refused_as: dict[str, Any] = {}

    @cached_property
    def operand_names(self) -> frozenset[str]:
        """The parameters that are tensors in any overload."""
        return frozenset([p.name for s in self.schemas for p in s.parameters if p.is_tensor])

    def canonical_parameters(self, schema: Schema) -> list[Parameter]:
        return sorted(schema.parameters, key=lambda p: p.name not in self.operand_names)

    def make_op(self, index: int, schema: Schema) -> Op:
        own = self.canonical_parameters(schema)
        operands = tuple([p.name for p in own if p.name in self.operand_names])
        rest = own[len(operands):]
        if "d" in self.rules and len(operands) > 1:
            raise TypeError(f"op {self.name}: `d` is the derivative by an only operand, but the "
                            f"operands are {', '.join(operands)}: say d_{operands[0]}, …")
        rules = {operands[0]: self.rules["d"]} if "d" in self.rules else self.rules
        tensors = {p.name for p in own if p.is_tensor or self.wraps}
        kernel = round_once(self.kernel) if self.wide else self.kernel
        op = Op(self.name, self.kind, schema=schema,
                key=self.key(schema.full_name) if self.is_additional(index) else self.name,
                declaration=self, kernel=kernel, vjp=self.vjp, jvp_rule=self.jvp,
                rules={name: rules.get(name) if name in tensors else None
                       for name in operands}, batch_rule=self.batch,
                tensors=operands, params=tuple([p.name for p in rest]),
                nondiff=(*self.nondiff.split(), *[n for n in operands if n not in tensors]),
                floating=self.floating, wide=self.wide,
                conditions=self.conditions.split(), check_conditions=self.check_conditions,
                check=self.check, check_bools=self.check_bools, check_complex=self.check_complex,
                raw=self.raw or self.fixed, fixed=self.fixed,
                inplace_check=self.inplace_check, refuses=self.refuses,
                refused_characters=characters(self.refuses[1]) if self.refuses else "",
                refused_as=self.refused_as, namespace=self.namespace, doc=self.doc,
                default_kernel=round_once(self.default_kernel)
                if self.wide and self.default_kernel else self.default_kernel,
                defaults=tuple([p.value for p in rest]),
                saved_as=self.saved_as,
                node_name=(self.node or f"{class_name(self.name)[:-1]}{{}}").format(index))
        infer_saved_values(op)
        if self.node == "NotImplemented":
            op.Backward.name = lambda self: "torch::autograd::NotImplemented"
        op.call = fast.make_callable("elementwise", op, make_call(op, interceptors, plain_types),
                                     self.kernel)
        op.direct = make_call(op, (), ANY)
        op.function = op.published = self.published
        return op


# ---- a call with canonical arguments -------------------------------------------------------------

def make_call(op: Op, interceptors: Any, plain_types: Any) -> Callable[..., Any]:
    """The twin of `run_pointwise`: operands in one type, the kernel, the node."""
    n, differentiable, refused = len(op.tensors), op.is_differentiable, op.refused_characters
    kernel, default_kernel, defaults = op.kernel, op.default_kernel, op.defaults

    def call(*canonical: Any) -> Any:
        if interceptors:
            if overrides.needs_override(canonical):         # what a level's tensors hold
                return overrides.call(op, *as_call_arguments(op, canonical))
            return intercept_canonical(op, canonical)
        if len(canonical) < n + len(defaults):
            canonical = (*canonical, *defaults[len(canonical) - n:])
        inputs, params = canonical[:n], canonical[n:]
        for value in inputs:
            if type(value) not in plain_types and value is not None and type(value) not in SCALARS:
                return coerce(op, canonical)
        check_types(op, canonical)
        try:
            values = operands(op, inputs)
        except RuntimeError:                        # of types that do not promote
            broadcast_shapes(*[v._array.shape for v in inputs if type(v) in tensor_types])
            raise
        first = next(v for v, name in zip(values, op.tensors) if isinstance(v, np.ndarray)
                     and name not in op.conditions)
        if first.dtype.char in refused and is_refused(op, first, values):
            raise no_kernel_for(op, first, values)
        try:
            if default_kernel is not None and all(map(is_, params, defaults)):
                array = default_kernel(*values)
            else:
                array = kernel(*values, *params)
        except ValueError:
            broadcast_shapes(*[v.shape for v in values if isinstance(v, np.ndarray)])
            raise
        except TypeError:
            raise no_kernel_for(op, first, values) from None
        result = wrap(array)
        if result._array.dtype.kind == "W":
            warn_of_complex_half()
        if differentiable and grad_enabled():
            edges = edges_of(inputs)
            if edges is not None and result._array.dtype in FLOATING:
                record(op, canonical, edges, result)
        return result
    return call


def check_types(op: Op, canonical: tuple[Any, ...]) -> None:
    """Raise for types of operands that the op refuses before it looks at their shapes."""
    for check in (op.check_conditions, op.check, op.check_bools, op.check_complex):
        if check is not None:
            check(*canonical)


def as_call_arguments(op: Op, canonical: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Canonical arguments as users would give them: some of them only by name."""
    by_name = {p.name for p in op.schema.parameters if p.by_name} if op.schema else set()
    names = (*op.tensors, *op.params)
    given = [value for name, value in zip(names, canonical) if name not in by_name]
    return tuple(given), {name: value for name, value in zip(names, canonical) if name in by_name}


def no_kernel_for(op: Op, first: np.ndarray, values: list[Any]) -> Exception:
    """That there is no kernel for this type; shapes that do not broadcast come before that."""
    broadcast_shapes(*[v.shape for v in values if isinstance(v, np.ndarray)])
    return no_kernel_error(op, first, *_without(values, first))


def is_refused(op: Op, first: np.ndarray, values: list[Any]) -> bool:
    """Is there no kernel for these operands, one of whose types there may be none for?"""
    said = op.refuses[0]
    return type(said) is str or bool(said(first, *_without(values, first)))


def _without(values: list[Any], first: np.ndarray) -> list[Any]:
    """The other operands: `first` may be among them again."""
    at = next(i for i, v in enumerate(values) if v is first)
    return values[:at] + values[at + 1:]


def operands(op: Op, inputs: tuple[Any, ...]) -> list[Any]:
    """The arrays of tensors and numbers, in the type of an expression over them."""
    values = [value._array if type(value) in tensor_types else value for value in inputs]
    if op.fixed:
        return values
    if op.conditions:
        return _beside_conditions(op, values)
    return promoted(op, values)


def _beside_conditions(op: Op, values: list[Any]) -> list[Any]:
    rest = iter(promoted(op, [v for v, name in zip(values, op.tensors)
                              if name not in op.conditions]))
    return [convert(v, np.dtype(bool)) if name in op.conditions else next(rest)
            for v, name in zip(values, op.tensors)]


def promoted(op: Op, values: list[Any]) -> list[Any]:
    """Arrays and numbers in one type."""
    arrays = [v for v in values if type(v) not in SCALARS and v is not None]
    if not arrays:
        values = [np.asarray(v, result_type([], values).numpy) for v in values]
        arrays = values
    if op.floating and not any(a.dtype in FLOATING for a in arrays):
        values = [convert(v, dtypes.default_float()) if isinstance(v, np.ndarray) else v
                  for v in values]
    if len(values) == 1:
        return values
    if len(values) == 2 and not op.raw and all(v is not None for v in values):
        return [*_convert_pair(op, *values)]
    numbers = [v for v in values if type(v) in SCALARS]
    target = result_type([v for v in values if isinstance(v, np.ndarray)], numbers).numpy
    if op.raw:
        return [convert(v, target) if isinstance(v, np.ndarray) else v for v in values]
    example = np.empty((1,), target)
    return [v if v is None else convert(v, target) if isinstance(v, np.ndarray)
            else scalar_operand(example, v)[1] for v in values]


def _convert_pair(op: Op, x: Any, y: Any) -> tuple[Any, Any]:
    if type(y) in SCALARS:
        known = scalar_cache.get((x.dtype, y)) if type(y) is not complex else None
        return scalar_operand(x, y, op.wide) if known is None else (x, known)
    if type(x) in SCALARS:
        y, x = scalar_operand(y, x)
        return x, y
    return (x, y) if x.dtype is y.dtype else promote(x, y, op.wide)


def coerce(op: Op, canonical: tuple[Any, ...]) -> Any:
    """A call whose operands are not all plain tensors and numbers."""
    if overrides.needs_override(canonical):
        return overrides.call(op, canonical, {})
    n = len(op.tensors)
    inputs = [_as_python_number(v) if isinstance(v, (np.generic, int, float, complex)) else v
              for v in canonical[:n]]
    for name, value in zip(op.tensors, inputs):
        if value is not None and type(value) not in tensor_types and type(value) not in SCALARS:
            raise TypeError(f"{op.name}(): argument '{name}' must be Tensor, not "
                            f"{type_name(value)}")
    canonical = (*inputs, *canonical[n:])
    if any(type(v) in tensor_types and v._device is not cpu for v in inputs):
        return late_bound.on_meta(op, canonical)
    return op.direct(*canonical)


def _as_python_number(value: Any) -> Any:
    """A number of NumPy or of a subclass (`IntEnum`) as the plain Python number."""
    if type(value) in SCALARS:
        return value
    if isinstance(value, np.generic):
        return number_of(value)
    kind: Any = next(kind for kind in (int, float, complex) if isinstance(value, kind))
    return kind(value)


# ---- the statement -------------------------------------------------------------------------------

def pointwise(*schemas: str, **declared: Any) -> Any:
    """Declare a pointwise op by its schemas, which give a tensor, its kernel, and what else a
    `Pointwise` says; gives the function. `d` is the derivative by the only operand, `d_<operand>`
    by each."""
    rules = {name[2:] or name: declared.pop(name) for name in [*declared]
             if name[:2] == "d_" or name == "d"}
    texts, declared["aliases"] = (
        tuple([text if "->" in text else f"{text} -> Tensor" for text in given])
        for given in (schemas, declared.get("aliases", ())))
    return declare(Pointwise(texts=texts, rules=rules, **declared))
