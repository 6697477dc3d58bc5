"""Which overload of PyTorch's dispatcher a public call is, with which arguments.

>>> call = of_public(flambeau.sum, (flambeau.ones(2, 3), 1), {})
>>> call.name, call.overload, call.args[1:], call.kwargs
('sum', 'dim_IntList', ([1],), {})
"""
from __future__ import annotations

import functools
import re
from typing import Any, NamedTuple

import flambeau
from flambeau._library.operators import overload_named
from flambeau._ops import aten
from flambeau.core.op import Op, table
from flambeau.dispatch.aten import forms
from flambeau.dispatch.aten.schemas import recorded, recorded_overload
from flambeau.dispatch.function import Function
from flambeau.schema.function_schema import MISSING, FunctionSchema


class Call(NamedTuple):
    """A call by overload: trailing arguments that are the defaults are left out."""
    name: str
    overload: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def declared(name: str) -> Op | None:
    """The op of that name that is declared by its schema, or the one that writes to its input."""
    op = table.get(name)
    if op is None and name[-1:] == "_":
        op = table.get(name[:-1])
        if op is not None and op.declaration is not None:
            return op if op.declaration.inplace else None
    return op if op is not None and op.declaration is not None else None


@functools.cache
def schema_of(name: str, overload: str) -> FunctionSchema | None:
    """PyTorch's schema of an overload; None if it has none."""
    found = recorded_overload(name, overload)
    return None if found is None else FunctionSchema(found.schema)


def _converted(kind: str, value: Any) -> Any:
    """A value as the dispatcher holds it: lists of the right length, floats, devices."""
    if value is None:
        return None
    kind = kind.removesuffix("?")
    match = re.fullmatch(r"(.+)\[(\d*)\]", kind)
    if match:
        if not isinstance(value, (list, tuple)):
            return [_converted(match[1], value)] * int(match[2] or 1)
        return [_converted(match[1], v) for v in value]
    if kind == "float":
        return float(value)
    return flambeau.device(value) if kind == "Device" else value


def call_of(name: str, overload: str, given: dict[str, Any]) -> Call | None:
    """The call of an overload with these arguments by name; None if PyTorch has no such overload,
    or if it gives no tensors."""
    schema = schema_of(name, overload)
    if schema is None or not any("Tensor" in r.declared for r in schema.returns):
        return None
    values = [_converted(a.declared, given[a.name]) if a.name in given and (
        given[a.name] is not None or a.declared.endswith("?")) else a.default_value
        for a in schema.arguments]
    args, kwargs = schema.arranged(values)
    return Call(name, overload, tuple(args), kwargs)


def of_public(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | None:
    """The overload that a call of a public function or method is; None if it is not one, but its
    parts are."""
    twin = getattr(function, "twin", None)
    if not isinstance(twin, Function):
        return None
    overload, values = twin.choose(args, kwargs)
    schema = overload.signature.schema
    name, _, which = schema.full_name.partition(".")
    if twin.writes:
        name += "_"
    if twin.__name__ in recorded():                 # `__and__`, and other names of one op
        name = twin.__name__
    names = ["self" if p.name == "input" else p.name for p in overload.parameters]
    given = dict(zip(names, values))
    if overload.out >= 0 and values[overload.out] is not None:
        return None
    found = schema_of(name, which or "default")
    for argument, value in zip(found.arguments if found else (), values):
        if argument.default is MISSING:             # Python may know it by another name
            given.setdefault(argument.name, value)
    return call_of(name, which or "default", given)


def of_canonical(op: Op, args: tuple[Any, ...]) -> Call:
    """The overload that a call with canonical arguments is shown as."""
    shown = forms.aten_call(op, args)
    name = shown.overload.overloadpacket.__name__
    return Call(name, shown.overload._overloadname, tuple(shown.args),
                shown.kwargs)


def target(name: str, overload: str) -> Any:
    """The overload as an object that can be called: `torch.ops.aten.linear.default`; an op of the
    program's is named with its namespace."""
    if "::" in name:
        return overload_named(name if overload == "default" else f"{name}.{overload}")
    return getattr(getattr(aten, name), overload)
