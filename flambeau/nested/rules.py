"""What the rules of nested tensors stand on, and those that both layouts have."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau._ops import OpOverload
from flambeau.core.shapes import wrap_dim
from flambeau.dispatch.aten.schemas import recorded_overload
from flambeau.dispatch.backend_errors import check_fit, without_rule
from flambeau.nested._internal.nested_int import NestedInt
from flambeau.nested.tensors import NestedTensor, join
from flambeau.utils._pytree import tree_map_only

BACKEND = "NestedTensorCPU"
FACTS = frozenset("""is_floating_point is_complex is_signed element_size get_device
    storage_offset is_inference is_conj is_neg is_distributed""".split())


class Call:
    """A public call with nested arguments: the function, what was given, and, where the call is
    bound to a schema, the values of its parameters by name."""

    def __init__(self, func: Any, args: Any, kwargs: dict[str, Any]):
        self.func, self.args, self.kwargs = func, args, kwargs
        op = func.overloadpacket._op if isinstance(func, OpOverload) else getattr(func, "op", None)
        self.fit = check_fit(getattr(func, "_op", func), with_plain_sizes(args),
                             with_plain_sizes(kwargs))
        self.title = op.name if op is not None else getattr(func, "__name__", "")
        self.name = self.title.strip("_")
        self.tensors = nested_in((*args, *kwargs.values()))
        self.facts: tuple[str, ...] = ()
        self.schema = self.given = None
        if self.fit is not None:
            overload, values = self.fit
            self.given = {p.name: v for p, v in zip(overload.parameters, values)}
            self.schema = (overload.op.functional or overload.op).schema
        if self.schema is not None:
            known = recorded_overload(self.schema.name + "_" * overload.op.inplace,
                                      self.schema.overload or "default")
            self.facts = () if known is None else known.facts

    @property
    def writes(self) -> bool:
        return self.title.endswith("_") and not self.title.endswith("__")

    def by_name(self, *names: str) -> dict[str, Any]:
        """What was given, by the names of a function's first parameters."""
        return {**dict(zip(names, self.args)), **self.kwargs}

    def rest(self, **changed: Any) -> dict[str, Any]:
        """The arguments after the first by name, some of them changed."""
        assert self.given is not None
        names = [*self.given][1:]
        return {k: v for k, v in {**{n: self.given[n] for n in names}, **changed}.items()
                if not (k == "out" and v is None)}

    def on(self, tensor: Any, **changed: Any) -> Any:
        """The same call of another first tensor, with other arguments."""
        return self.func(tensor, **self.rest(**changed))

    def refuse(self, layout: str) -> Any:
        return without_rule(self.func, self.args, self.kwargs, BACKEND, layout, self.fit)


Rule = Callable[[Call, NestedTensor], Any]


def entering(rules: dict[str, Rule]) -> Callable[[str], Callable[[Rule], Rule]]:
    """A decorator that enters a rule under the names of ops."""
    def rule(names: str) -> Callable[[Rule], Rule]:
        def enter(function: Rule) -> Rule:
            rules.update(dict.fromkeys(names.split(), function))
            return function
        return enter
    return rule


common: dict[str, Rule] = {}            # of both layouts
registered: dict[str, Any] = {}         # of programs; `_internal.ops.register_func` fills it
rule = entering(common)


def nested_in(args: Any) -> list[NestedTensor]:
    found: list[NestedTensor] = []
    for arg in args:
        if isinstance(arg, NestedTensor):
            found.append(arg)
        elif isinstance(arg, list | tuple):
            found += nested_in(arg)
    return found


each = partial(tree_map_only, Tensor)     # `each(change, args)`: the arguments with other tensors


def with_plain_sizes(args: Any) -> Any:
    """The arguments with ints for lengths that vary, which signatures do not know."""
    if isinstance(args, list | tuple):
        return tuple([with_plain_sizes(a) for a in args])
    if type(args) is dict:
        return {k: with_plain_sizes(v) for k, v in args.items()}
    return -1 if isinstance(args, NestedInt) else args


def elements(tensor: Tensor) -> Tensor:
    return tensor._elements if isinstance(tensor, NestedTensor) else tensor


def on_elements(call: Call, x: NestedTensor) -> Any:
    """The op of the elements of all nested arguments, which have the same parts."""
    values = call.func(*each(elements, call.args), **each(elements, call.kwargs))
    return call.args[0] if call.writes else x.with_values(values)


def by_part(call: Call, *args: Any, node: str = "", **kwargs: Any) -> NestedTensor:
    """The op of each part, joined in the layout of the tensor. Other tensors are the same for all
    parts."""
    def run(i: int) -> Any:
        def part(t: Tensor) -> Tensor:
            return t._parts()[i] if isinstance(t, NestedTensor) else t
        return call.func(*each(part, args), **each(part, kwargs))

    x = call.tensors[0]
    results = [run(i) for i in range(len(x))]
    return join(results, x.layout, x._length, node or node_of(results))


def node_of(results: list[Tensor]) -> str:
    """By which op they came about."""
    return type(results[0].grad_fn).__name__ if results and results[0].grad_fn is not None else ""


@rule("is_same_size")
def _are_same_size(call: Call, x: NestedTensor) -> bool:
    nested = [isinstance(t, NestedTensor) for t in call.args]
    if not all(nested):
        first, second = ("nested" if n else "not nested" for n in nested)
        raise RuntimeError("Expected both self and other to be nested tensors. Self is "
                           f"{first}. While Other is {second}.")
    first, second = call.args
    return first._shapes == second._shapes and first._length == second._length


@rule("grad")
def _grad(call: Call, x: NestedTensor) -> Any:
    """`autograd.grad`: of the elements, in the form of the tensors."""
    given = call.by_name("outputs", "inputs", "grad_outputs")
    inputs = given["inputs"]
    listed = isinstance(inputs, list | tuple)
    found = call.func(**each(elements, given))
    return tuple([i.with_values(g) if isinstance(i, NestedTensor) and g is not None else g
                  for i, g in zip(inputs if listed else [inputs], found)])


@rule("native_multi_head_attention")
def _attend(call: Call, x: NestedTensor) -> Any:
    """The result is nested, the weights are padded with zeros."""
    results, weights = [], []
    for parts in zip(*[t.unbind() for t in call.args[:3]]):
        result, weight = call.func(*[p.unsqueeze(0) for p in parts], *call.args[3:], **call.kwargs)
        results.append(result.squeeze(0))
        weights.append(weight)
    if weights[0] is None:
        return join(results, x.layout), None
    longest = max(w.size(-1) for w in weights)
    pad = flambeau.nn.functional.pad
    return join(results, x.layout), flambeau.cat([
        pad(w, [0, longest - w.size(-1), 0, longest - w.size(-2)]) for w in weights])


@rule("transformer_encoder_layer_fwd")
def _encode(call: Call, x: NestedTensor) -> NestedTensor:
    return join([call.func(part.unsqueeze(0), *call.args[1:], **call.kwargs).squeeze(0)
                 for part in x.unbind()], x.layout)


rule("embedding")(on_elements)


def same_dims(dims: Any, rank: int) -> list[int]:
    """The dimensions that an argument names; all of them for None."""
    given: Iterable[int] = range(rank) if dims is None else dims
    if isinstance(dims, int):
        given = [dims]
    return [wrap_dim(d, rank) for d in given]


__all__ = ["Call", "by_part", "common", "entering", "registered"]
