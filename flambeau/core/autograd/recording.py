"""Recording a call: the node that is made of it, with its edges and what it saves; and views, which
share the version counter and the history of the tensor whose memory they look at.
"""
from __future__ import annotations

from typing import Any

from numpy import ndarray

from flambeau._support.scopes import within
from flambeau._support.source_locations import counter_of
from flambeau.core import late_bound
from flambeau.core.autograd.graph import (
    Node,
    Output,
    next_order,
    save_input,
    save_result,
    saved_tensor_hooks,
)
from flambeau.core.dtypes import FLOATING
from flambeau.core.modes import grad_mode
from flambeau.core.op import Op
from flambeau.core.tensor import (
    LAZY,
    Tensor,
    array_strides,
    gradient_edge,
    new_tensor,
    new_view,
    plain_types,
    tensor_types,
    unrecorded,
)


def edges_of(inputs: Any) -> tuple[Any, ...] | None:
    """The gradient edges of the inputs; None if none of them requires grad."""
    edges = tuple([None if t is None or type(t) not in tensor_types or t._edge is None
                   else gradient_edge(t) for t in inputs])
    for edge in edges:
        if edge is not None:
            return edges
    return None


def is_by_columns(tensor: Tensor) -> bool:
    """Does a matrix lie in memory column by column? All dimensions but the last are its rows."""
    a = tensor._array
    step, last = a.itemsize, a.ndim - 1
    for n, stride in zip(a.shape[-2::-1], a.strides[-2::-1]):
        if stride != step and (last == 1 or n != 1):
            return False
        step *= n
    return last > 0 and a.strides[-1] == step


def record(op: Op, canonical: tuple[Any, ...], edges: tuple[Any, ...], results: Any) -> None:
    """Make the node of a call that has given `results`."""
    node = op.Backward()
    node.edges, node.order = edges, next_order()
    if op.returns is None:
        results = (results,)
    elif not op.implicit:                # else the first alone is a result that users see
        node.outputs = len(results)
        node.simple = node.outputs == 1
        node.results = [(r._array.shape, r._array.dtype) for r in results]
    for i, result in enumerate(results):
        array = result._array
        if array.dtype not in FLOATING or (op.differentiable is not True
                                           and not op.differentiable[i]):
            continue
        if node.outputs == 1:
            node.shape, node.dtype = array.shape, array.dtype
            edge: Any = node
        else:
            edge = Output(node, i, array.shape, array.dtype)
        if op.view and result._base is not None:
            result._view.node = edge
        else:
            result._edge = edge
    saved = []
    for (kind, where), users in zip(op.plan, op.users):
        if kind == "tensor":
            used = users is None or any(edges[i] is not None for i in users)
            saved.append(save_input(canonical[where]) if used else None)
        elif kind == "param":
            saved.append(canonical[where])
        elif kind == "shape":
            of = canonical[where]
            saved.append(of._array.shape if type(of) in tensor_types else ())
        elif kind == "dtype":
            of = canonical[where]
            saved.append(of._array.dtype if type(of) in tensor_types else None)
        elif kind == "geometry":
            saved.append(late_bound.geometry(canonical[where]))
        elif kind == "by_columns":
            saved.append(is_by_columns(canonical[where]))
        elif kind == "result":
            saved.append(save_result(results[where], where))
        elif kind == "tensors":
            saved.append([save_input(t) for t in canonical[0][where:]])
        else:
            saved.append([getattr(t._array, kind[:-1]) for t in canonical[0]])
    node.saved = tuple(saved)
    if node_watchers:
        watch(node, canonical)
    if saved_tensor_hooks:
        late_bound.pack_node(node)


node_watchers: list[Any] = []           # anomaly mode and its kind: called with each new node


def watch(node: Node, inputs: Any = ()) -> None:
    for watcher in node_watchers:
        watcher(node)


def make_view(parent: Tensor, array: ndarray, replay: Any, made: str) -> Tensor:
    """A tensor on part of `parent`'s memory that shares its version counter."""
    result = new_tensor()
    result._array = array
    result._counter = counter = counter_of(parent)
    if parent._inference:                   # which remembers no base
        result._base = result._edge = None
        return result
    base = parent._base
    result._base = parent if base is None else base
    result._edge = LAZY
    result._view = view = new_view()
    view.node, view.replay = None, replay
    view.version = unrecorded(counter[0]) if made == "no_grad" else counter[0]
    view.made = made or (parent._view.made if parent._edge is LAZY else "")
    return result


def replay_of(op: Op, parent: Tensor, canonical: tuple[Any, ...], always: bool = False) -> Any:
    """How to make a view again from its base, where strides on the base cannot say it."""
    before = parent._view.replay if parent._edge is LAZY else None
    if before is None and op.view != "replay" and not always:
        return None
    rest = canonical[1:]
    if before is None and parent._base is None:
        before = _identity
    elif before is None:
        array, own = parent._array, parent._base._array
        before = lambda base: late_bound.same_part(base, array, own)
    declared = op.declaration.replay if op.declaration is not None else None
    if always or (op.view == "replay" and not callable(declared)):
        return lambda base: op.call(before(base), *rest)
    return lambda base: _replay_by_strides(op, before(base), rest, declared)


def _identity(base: Tensor) -> Tensor:
    return base


def _replay_by_strides(op: Op, parent: Tensor, rest: tuple[Any, ...], reinterpret: Any) -> Tensor:
    """A view made again by its strides on the parent, or on what `reinterpret` makes of that."""
    if type(parent) not in plain_types:
        return op.call(parent, *rest)
    part = within(grad_mode, False, op.call, parent, *rest)
    source = reinterpret(parent) if callable(reinterpret) else parent
    return late_bound.as_strided(source, part._array.shape, array_strides(part._array),
                                 part.storage_offset())
