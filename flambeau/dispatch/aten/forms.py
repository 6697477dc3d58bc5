"""Which op of PyTorch's dispatcher a call is shown as, by modes and subclasses that look below
autograd.

That is the overload with the op's schema, unless the declaration says more: `aten`, how a call
becomes one of another overload, or `aten_calls`, what makes several calls, which then show
themselves.
"""
from __future__ import annotations

import inspect
import re
from contextvars import ContextVar
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from flambeau._ops import OpOverload, aten
from flambeau.core import devices
from flambeau.core.autograd import engine
from flambeau.core.autograd.engine import current_autograd_node
from flambeau.core.autograd.formulas import parameters
from flambeau.core.dtypes import from_numpy_dtype
from flambeau.core.op import Op
from flambeau.core.shapes import Size
from flambeau.core.tensor import Tensor, tensor_types
from flambeau.dispatch.canonical import Canonical
from flambeau.schema.function_schema import FunctionSchema
from flambeau.schema.parser import parse


class Form:
    """One way to show an op: an overload, and its arguments as a formula of the op's own.

    What these say is in `flambeau.dispatch.facts.AtenForm`.
    """

    def __init__(self, schema: str, args: Any = None, run: Any = None, grads: Any = None):
        self.schema, self.args, self.grads = FunctionSchema(schema), args, grads
        name = self.schema.name.partition("::")[2]
        self.overload = aten.packet(name).declare(self.schema.overload_name or "default", schema,
                                                  run)

    def values(self, given: dict[str, Any]) -> Any:
        """The arguments of the overload; None if this form is not that of the call."""
        if self.args is not None:
            return self.args(*[given[n] for n in own_parameters(self.args)])
        return [given[_alternative_name(a.name) if a.name not in given else a.name]
                if a.name in given or _alternative_name(a.name) in given else a.default_value
                for a in self.schema.arguments]

    @property
    def written(self) -> Form:
        """The form of the op that writes its result into the first argument."""
        found = self.__dict__.get("_written")
        if found is None:
            name, _, rest = self.schema._text.partition("(")
            packet, dot, overload = name.partition(".")
            overload = overload.removeprefix("Tensor_")         # `pow_.Scalar`
            rest = rest.replace("Tensor ", "Tensor(a!) ", 1).replace("-> Tensor", "-> Tensor(a!)")
            found = self.__dict__["_written"] = Form(
                f"{packet}_{dot}{overload}({rest}", self.args, None, self.grads)
        return found


def own_parameters(formula: Any) -> tuple[str, ...]:
    """The names of a formula's parameters that have no default."""
    return parameters(formula)[:formula.__code__.co_argcount - len(formula.__defaults__ or ())]


def _alternative_name(name: str) -> str:
    return {"self": "input", "input": "self", "x1": "input"}.get(name, name)


inside: ContextVar[bool] = ContextVar("inside", default=False)      # calls of `aten_calls`


class AtenCall(NamedTuple):
    """A call as it is shown."""
    overload: OpOverload
    args: list[Any]
    kwargs: dict[str, Any]
    form: Form | None
    values: Any                             # of the form's arguments


def has_form(op: Op) -> bool:
    """Is this composite shown as one, or as calls other than those of its body?"""
    declared = _functional_of(op).declaration
    return declared is not None and bool(declared.explicit or declared.aten or declared.aten_calls)


def replacement_calls(op: Op) -> Any:
    """What makes the calls that are shown in place of the op; None if it is shown itself."""
    if op.inplace or op.declaration is None:
        return None
    return op.declaration.aten_calls or (op.parts if op.implicit else None)


def _functional_of(op: Op) -> Op:
    return op.functional if op.inplace and op.functional is not None else op


def named(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """The arguments of a call by name: canonical ones, or those of users (then with `kwargs`)."""
    base = _functional_of(op)
    if kwargs is None:
        return dict(zip((*base.tensors, *base.params), args))
    if base.schema is not None and not kwargs:      # a body's arguments, which are bound
        own = base.declaration.canonical_parameters(base.schema)
        return dict(zip([p.name for p in own], args))
    bound = _signature(base.body).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.arguments


_signature = cache(inspect.signature)


def aten_call(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> AtenCall:
    """How a call appears; `kwargs` are those of users, None with canonical arguments."""
    base = _functional_of(op)
    if base.kind == "creation" and base.declaration is not None:
        return _composite_call(op, args, kwargs or {})
    if base.schema is not None:
        found = _alternative_forms(base)
        if base.declaration.function or not found:
            found = [*found, *_declared_forms(base, _is_number(base, args))]
        given = named(op, args, kwargs)
        plain = {**given, **args.given} if type(args) is Canonical else given
        plain = _as_node_counts(plain)
        for form in found:
            values = form.values(plain if form.args is None else given)
            if values is not None:
                form = form.written if op.inplace else form
                values = [_as_user_value(v) for v in values]
                return AtenCall(form.overload, *form.schema.arranged(values), form, values)
        return AtenCall(_own_overload(op), list(args), dict(kwargs or {}), None, None)
    if kwargs is None and not _takes_canonical(base):
        return AtenCall(_own_overload(op), list(args), {}, None, None)
    packet = aten.packet(base.name + "_" * op.inplace, op)
    return AtenCall(packet.overload("default"), list(args), dict(kwargs or {}), None, None)


def dims_given(op: Op, args: Any) -> dict[str, tuple[Any, Any]]:
    """The dimensions of a call that users did not count from the front: what they became, and what
    was given."""
    given = getattr(args, "given", None)
    if not given or op.declaration is None or not op.declaration.as_given:
        return {}
    own, declared = named(op, args, None), op.declaration
    dims = f"{declared.dims} {declared.new_dims} {declared.all_dims} {declared.some_dims}".split()
    return {n: (own[n], given[n]) for n in dims if n in given and n in own
            and _tuple_as_list(own[n]) != given[n]}


def _as_node_counts(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call in a formula with dimensions as the call that it derives has them."""
    known = getattr(_running_node(), "dims_given", None)
    if not known:
        return given
    return {**given, **{n: own for n, (counted, own) in known.items()
                        if n in given and _tuple_as_list(given[n]) == _tuple_as_list(counted)}}


def _composite_call(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> AtenCall:
    """A composite that is declared by its schemas: the overload that the call is bound to."""
    overload, values = op.published.twin.choose(args, kwargs)
    given = dict(zip(["self" if p.name == "input" else p.name for p in overload.parameters],
                     values))
    schema, out, declaration = overload.signature.schema, given.get("out"), op.declaration
    form = _parse_form(declaration.texts[declaration.schemas.index(schema)], out is not None)
    if schema.is_factory and out is None:
        given["pin_memory"] = None if in_native_code() else bool(given["pin_memory"])
        if given["device"] is not None:
            given["device"] = devices.device(given["device"])
        elif "self" not in given:
            given["device"] = devices.checked(None)
        if given["dtype"] is None:
            del given["dtype"]                      # the schema's default
    values = [_tuple_as_list(given.get(a.name, a.default_value)) for a in form.schema.arguments]
    return AtenCall(form.overload, *form.schema.arranged(values), form, values)


def member_call(overload: Any, values: list[Any]) -> AtenCall:
    """How a call of a member appears, which was bound to that overload."""
    text = next(text for text in overload.op.declaration.texts
                if text.partition("(")[0] == overload.signature.schema.full_name)
    form, given = _parse_form(text, False), dict(zip([p.name for p in overload.parameters], values))
    own = [_tuple_as_list(given.get(a.name, a.default_value)) for a in form.schema.arguments]
    return AtenCall(form.overload, *form.schema.arranged(own), form, own)


def storing_call(op: Op, args: tuple[Any, ...], out: Any) -> AtenCall | None:
    """How a call appears whose results are written to `out`; None if PyTorch's dispatcher sees the
    calls that it is made of."""
    call = aten_call(op, args, {} if op.composite else None)
    form = None if call.form is None else _storing_form(call.overload, call.form.schema._text)
    outs = list(out) if isinstance(out, (tuple, list)) else [out]
    if form is None or len(form.schema.arguments) != len(call.values) + len(outs):
        return None
    values = dict(zip([a.name for a in call.form.schema.arguments], call.values))
    if op.declaration.typed_by_out and values["dtype"] is outs[0].dtype:
        values["dtype"] = None                      # nobody has given it: it is that of `out`
    values.update(zip([a.name for a in form.schema.arguments if a.is_out], outs))
    arranged = form.schema.arranged([values[a.name] for a in form.schema.arguments])
    return AtenCall(form.overload, *arranged, form, None)


@cache
def _storing_form(overload: OpOverload, text: str) -> Form | None:
    """The form that writes to tensors what that one gives; None if that is a composite."""
    own = [(a.name, a.declared) for a in FunctionSchema(text).arguments]
    for name in overload._packet.overloads():
        other = overload._packet.overload(name)
        arguments = other._schema.arguments
        if len(arguments) > len(own) and "implicit" not in (other._facts or ()) \
                and [(a.name, a.declared) for a in arguments if not a.is_out] == own:
            return Form(other._schema._text)
    return None


@cache
def _parse_form(text: str, stores: bool) -> Form:
    """The form with that schema, or of what `stores` the same into `out=`."""
    if not stores:
        return Form(text)
    head = text.rpartition(" -> ")[0]
    name, _, own = _OPTIONS.sub("", head[:-1]).partition("(")
    packet, _, overload = name.partition(".")
    overload = "out" if overload in ("", "memory_format", "start_step") else f"{overload}_out"
    own += ", *" * ("*" not in own)
    names = [r.name or "out" for r in parse(text).results]
    outs = [f"Tensor({letter}!) {name}" for letter, name in zip("abcdef", names)]
    results = ", ".join([out.partition(" ")[0] for out in outs])
    return Form(f"{packet}.{overload}({', '.join([own, *outs])}) -> "
                + (f"({results})" if len(outs) > 1 else results), None, None, None)


_OPTIONS = re.compile(r"(, )?ScalarType\? dtype=\w+, Layout\? layout=None, Device\? device=None, "
                      r"bool\? pin_memory=None")


def _tuple_as_list(value: Any) -> Any:
    return [*value] if type(value) is tuple or isinstance(value, Size) else value


@cache
def _alternative_forms(op: Op) -> list[Form]:
    """Those that the declaration names."""
    return [Form(*form) for form in op.declaration.aten]


@cache
def _declared_forms(op: Op, number: bool) -> list[Form]:
    """Those of an op which is declared by its schema: its own, and for arguments that only a
    transform gives it (`dim` of a sum over all of a slice) the next overload; with a `number` as
    the second operand the one that users can't call."""
    declaration = op.declaration
    index = [own.key for own in declaration.ops].index(op.key)
    texts = declaration.texts[index:]
    if op.kind == "pointwise":
        names = [text.partition("(")[0] for text in declaration.texts]
        index = names.index(op.schema.full_name) + number
        texts = declaration.texts[index:index + 1]
    run = None if declaration.function else declaration.published
    return [_WholeForm(text, None, run, None) for text in texts]


def _is_number(op: Op, args: tuple[Any, ...]) -> bool:
    """Is this shown as the overload with a number, which Python's operators wrap, but formulas of
    derivatives and PyTorch's composites don't?"""
    if not op.declaration.hidden or type(args[1]) in tensor_types:
        return False
    return inside.get() or (engine.current_pass.get() is not None
                            and not _is_operator_number(args[1]))


def in_native_code() -> bool:
    """Is a call made by what PyTorch has in C++: composites, formulas, the engine? There, options
    that nobody has stated are not passed on."""
    if inside.get():
        return True
    node = _running_node()
    return type(node) in tensor_types or getattr(node, "op", None) is not None


def _running_node() -> Any:
    """The node that the engine runs, or the leaf that it adds to; None outside a pass."""
    this = engine.current_pass.get()
    return this and this.running


class _WholeForm(Form):
    """One that fits only if it takes all arguments that are not left out."""

    def values(self, given: dict[str, Any]) -> Any:
        taken = {a.name for a in self.schema.arguments}
        if any(value is not None and value is not False and name not in taken
               and _alternative_name(name) not in taken for name, value in given.items()):
            return None
        return [[] if value is None and a.declared.endswith("]") else value     # all dimensions
                for a, value in zip(self.schema.arguments, super().values(given))]


@cache
def _takes_canonical(op: Op) -> bool:
    """Can users pass the canonical arguments of this op, in their order?"""
    return op.kind in ("pointwise", "composite")


@cache
def _own_overload(op: Op) -> OpOverload:
    """What a call with arguments that users cannot pass is shown as: flambeau's own op."""
    found = OpOverload(aten.packet(op.name, op), "default", run=op.call)
    found._facts = None                     # its arguments are not those of PyTorch's overload
    return found


def _as_user_value(value: Any) -> Any:
    """A value of a canonical argument as users would pass it."""
    if isinstance(value, np.dtype):
        return from_numpy_dtype(value)
    return value.item() if isinstance(value, (np.ndarray, np.generic)) else value


def _is_operator_number(number: Any) -> bool:
    """In a backward pass: is this the wrapped number that the node which runs has saved, or does
    the program itself say what the node does?"""
    node = current_autograd_node()
    if node is None or node.op is None:
        return node is not None
    if node.of_number:
        return False
    declaration = node.op.declaration
    return declaration is not None and bool(declaration.hidden) \
        and any(saved is number for saved in node.saved or ())


def tensors_in(values: Any) -> list[Tensor]:
    """The tensors among values, also inside lists, in order."""
    found: list[Tensor] = []
    for value in values:
        if type(value) in tensor_types:
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += tensors_in(value)
    return found
