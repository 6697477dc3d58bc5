"""Composites that are one node of the graph, as in PyTorch, where they are one op.

What a composite records is the graph of its parts. Users see the node that made the result under
the name of PyTorch's only node, and behind it the inputs of the composite: the parts are hidden. A
node that gets hooks runs as the whole that it is seen as: what its hooks are given are the
gradients of the composite's inputs.

>>> from flambeau.dispatch.declaration import op
>>> @op("twice(Tensor self) -> Tensor", method=False)
... @one_node
... def twice(self):
...     return self.exp() + self
>>> y = twice(flambeau.ones(1, requires_grad=True))
>>> y
tensor([3.7183], grad_fn=<TwiceBackward0>)
>>> [node.name() for node, _ in y.grad_fn.next_functions]
['torch::autograd::AccumulateGrad']
"""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import flambeau
from flambeau._support.scopes import within
from flambeau.core.autograd import engine
from flambeau.core.autograd.graph import Node, next_order, node_class, unpack
from flambeau.core.autograd.saved_names import is_node_name
from flambeau.core.dtypes import FLOATING
from flambeau.core.modes import grad_enabled, grad_mode, interceptors, shows_ops
from flambeau.core.op import class_name
from flambeau.core.tensor import Tensor, gradient_edge, tensor_types

F = TypeVar("F", bound=Callable[..., Any])


def _cached(function: F) -> F:
    """`functools.cache`, with the type of the function: mypy forgets its parameters there."""
    found: Any = functools.cache(function)
    return found


@_cached
def known_as(cls: type, name: str, differentiated: Any = None) -> type:
    """The class `cls` of nodes under another name, perhaps with edges for some inputs only."""
    members: dict[str, Any] = {"__slots__": (), "__module__": cls.__module__, "unfold": None,
                               "name": Node.name}
    if differentiated is not None:
        members["differentiated"] = differentiated
    return type(name, (cls,), members)


def new_node(result: Any, since: int) -> Any:
    """The node that made `result`, if it is newer than `since`."""
    edge = gradient_edge(result) if type(result) in tensor_types else None
    if edge is None or type(edge) in tensor_types or edge.order >= since:
        return None
    return edge.node


def rename(result: Any, name: str, since: int, differentiated: Any = None, whole: Any = None,
           **shown: Any) -> None:
    """Give the node that made `result`, if that is newer than `since`, a name, and saved values
    that it is to show. `differentiated` says which inputs have edges, if not all; `whole` are the
    edges of the composite that the node is to stand for."""
    node = new_node(result, since) if grad_enabled() else None
    if node is not None:
        node.__class__ = known_as(type(node), name, differentiated)
        if whole is not None:
            node.__dict__["whole"] = whole
        for key, value in shown.items():
            node.__dict__[f"_saved_{key}"] = value


def one_node(body: Any = None, *, name: str = "", inputs: str = "") -> Any:
    """Decorate the body of a composite: its results are those of a node of its name, or `name`,
    whose edges lead to its floating tensors, or to the parameters that `inputs` names."""
    if body is None:
        return functools.partial(one_node, name=name, inputs=inputs)
    title = name or class_name(body.__name__)
    wanted = inputs.split()
    names = [*inspect.signature(body).parameters]

    @functools.wraps(body)
    def run(*args: Any, **kwargs: Any) -> Any:
        if not grad_enabled():
            return body(*args, **kwargs)
        since = next_order()
        if wanted:
            given = dict(zip(names, args)) | kwargs
            edges = [edge_of(given.get(n)) for n in wanted]
        else:
            edges = [edge_of(t) for t in floating_tensors((*args, *kwargs.values()))]
        result = body(*args, **kwargs)
        for one in result if isinstance(result, tuple | list) else (result,):
            node = new_node(one, since)
            if node is not None:
                node.__class__ = known_as(type(node), title)
                node.__dict__["whole"] = tuple(edges)
        return result
    return run


def stand_for(result: Any, seen: Callable[[], tuple[Node, int]]) -> Any:
    """Let users see another node, and an output of that, as what made `result`: `seen` gives
    them."""
    edge = gradient_edge(result) if grad_enabled() else None
    if edge is not None and type(edge) not in tensor_types:
        edge.node.__class__ = _standing_for(type(edge.node))
        edge.node.__dict__["stands_for"] = seen
    return result


@_cached
def _standing_for(cls: type) -> type:
    return type(cls.__name__, (cls,), {"__slots__": (), "__module__": cls.__module__,
                                       "seen": lambda node, index: node.stands_for()})


def floating_tensors(values: Any) -> list[Any]:
    """The tensors that can have gradients among arguments, and among those that are lists."""
    flat = [one for value in values
            for one in (value if isinstance(value, tuple | list) else (value,))]
    return [one for one in flat if type(one) in tensor_types and one._array.dtype in FLOATING]


def edge_of(value: Any) -> Any:
    return gradient_edge(value) if type(value) in tensor_types else None


def close_whole(node: Node) -> None:
    """Let the last node of a composite become the one node that it is seen as."""
    inner: Any = type(node).__mro__[1](node)        # at the same place in the program
    for slot in ("edges", "saved", "order", "shape", "dtype"):
        setattr(inner, slot, getattr(node, slot))
    for key in ("outputs", "results", "result_state"):
        if key in node.__dict__:
            setattr(inner, key, getattr(node, key))
    inner.simple = node.outputs == 1
    whole = node.whole
    node.__class__ = _closed(type(node).__name__)
    node.edges, node.saved, node.whole = whole, (inner,), None


@functools.cache
def _closed(name: str) -> type[Node]:
    """A class of nodes whose gradients are those of a graph that they hold."""
    return node_class(name, saved_names=("graph",), saved_kinds=("value",), frees=True,
                      apply=_apply_closed)


def _apply_closed(node: Node, grad: Any) -> list[Any]:
    inner, = node.saved
    wanted = list(dict.fromkeys(e for e in node.edges if e is not None))
    found = dict(zip(wanted, engine.run([(inner, grad)], True, grad_enabled(), wanted,
                                        accumulate=False, closed=True) or ()))
    return [None if edge is None else found.pop(edge, None) for edge in node.edges]


# ---- second derivatives --------------------------------------------------------------------------


@_cached
def _name_of_formula(cls: type[Node]) -> str:
    """The class of nodes that a formula itself has in PyTorch, where it is an op; else nothing."""
    name = f"{cls.__name__.rpartition('Backward')[0]}BackwardBackward0"
    return name if is_node_name(name) else ""


def see_formula(node: Node, grad: Any, produced: Any, since: int) -> None:
    """Let the gradients that a node gives be results of one node, where PyTorch's are."""
    name = _name_of_formula(type(node))
    if not name or type(grad) is list or node.packed:      # what a hook holds is read once
        return
    edges = None
    for one in produced:
        last = new_node(one, since)
        if last is None or type(last).__name__ == name:
            continue
        if edges is None:
            inputs = [unpack(node, i) for i, kind in enumerate(node.saved_kinds)
                      if kind in ("tensor", "result")]
            edges = (edge_of(grad), *[edge_of(t) for t in floating_tensors(inputs)])
        last.__class__ = known_as(type(last), name)
        last.__dict__["whole"] = edges


def with_number(function: Callable[..., Any], name: str, packet: str = "") -> Callable[..., Any]:
    """A function of a tensor and a number whose node bears the name of the overload for numbers:
    PyTorch's composites and formulas call that, where Python's operators make tensors of numbers.
    """
    def call(input: Any, number: Any) -> Any:
        if packet and shows_ops() and isinstance(input, Tensor) and not isinstance(
                number, Tensor):                # a mode of dispatch, which sees the overload
            return getattr(flambeau.ops.aten, packet).Scalar(input, number)
        if not grad_enabled():
            return function(input, number)
        since = next_order()
        result = function(input, number)
        rename(result, name, since, (0,))
        return result
    return call


plus = with_number(lambda input, number: input + number, "AddBackward1", "add")
minus = with_number(lambda input, number: input - number, "SubBackward1", "sub")
times = with_number(lambda input, number: input * number, "MulBackward1", "mul")
over = with_number(lambda input, number: input / number, "DivBackward1", "div")


def clamped_value(input: Any, least: float) -> Any:
    """A copy whose values are at least `least`, and whose slope is 1 everywhere."""
    if type(input) is Tensor and input._edge is None and not interceptors \
            and input.is_floating_point():
        return input.clamp_min(least)
    result = input.clone()
    within(grad_mode, False, result.clamp_min_, least)
    return result


__all__ = ["clamped_value", "edge_of", "known_as", "minus", "one_node",
           "over", "plus", "rename", "stand_for", "times", "with_number"]
