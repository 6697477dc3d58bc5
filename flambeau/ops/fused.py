"""Composites with kernels: the body is the meaning, the kernels are the way it usually runs."""
from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import update_wrapper
from typing import Any

from numpy import asarray, ndarray

from flambeau._support.scopes import within
from flambeau._support.source_locations import counter_of
from flambeau.autograd.saved_hooks import pack_node
from flambeau.core import engine, fast, overrides
from flambeau.core.backward_errors import freed
from flambeau.core.graph import (
    next_order,
    node_class,
    packers,
    save_input,
    save_result,
    unpack,
)
from flambeau.core.modes import grad_enabled, grad_mode, intercept, interceptors, levels
from flambeau.core.op import (
    Op,
    class_name,
    differentiated,
    edges_of,
    node_watchers,
    parameters,
    publish,
    watch,
)
from flambeau.core.tensor import (
    Tensor,
    alias,
    gradient_edge,
    new_tensor,
    plain,
    wrap,
)
from flambeau.ops.coercion import store
from flambeau.ops.node_names import become, can_unfold
from flambeau.ops.view.copying import graph_alias


def unfolded(node: Any, body: Any, n: int) -> Any:
    """Let a node that has not run become the last node of the graph of its body, before which the
    others are made: one node does what they do until somebody looks."""
    if not can_unfold(node):
        return node
    given = [unpack(node, i) for i in range(n)]
    for i, edge in enumerate(node.edges):
        if edge is not None:
            again = alias(given[i]._array, type(given[i]))
            again._counter, again._edge = counter_of(given[i]), edge
            given[i] = again
    return become(node, within(grad_mode, True, body, *given, *node.rest))


def fused(kernel: Any, *, backward: Any, extras: tuple[str, ...] = (), when: Any = None,
          namespace: Any = "nn.functional", method: Any = False, node_name: str = "",
          tensors: tuple[str, ...] = ("input",), aliases: tuple[str, ...] = (),
          name: str = "", out: bool = False, nondiff: tuple[str, ...] = (),
          unfolds: Any = False) -> Any:
    """Annotate a composite with kernels that run it, and its gradient, in one go.

    The body is the mathematics: every transform (forward mode, vmap, `create_graph`) runs it, and
    tests hold the kernels against it. Its first parameters are the `tensors`.

    kernel      arrays and other arguments to (result, *extras), or to the result without extras
    backward    arrays: `grad`, `needs`, and by name what it uses of the arguments, `result`, extras
    when        optional condition on the arguments for using the kernels
    out         does it take `out=`?
    nondiff     tensors that `backward` gives no gradient of
    unfolds     is the graph of the body what users see when they look at the node? Or a function
                of the node that says so
    """
    def declare(body: Callable[..., Any]) -> Callable[..., Any]:
        return make_fused(body, kernel, backward, extras, when, tensors, namespace, method,
                          node_name, aliases, name, out, nondiff, unfolds)
    return declare


def make_fused(body: Callable[..., Any], kernel: Any, backward: Any, extras: tuple[str, ...],
               when: Any, tensors: tuple[str, ...], namespace: Any, method: Any, node_name: str,
               aliases: tuple[str, ...], name: str, writes: bool,
               nondiff: tuple[str, ...] = (), unfolds: Any = False) -> Callable[..., Any]:
    """The public function of a `fused` declaration."""
    title = name or body.__name__
    signature = inspect.signature(body)
    names = tuple(signature.parameters)
    defaults = tuple([p.default for p in signature.parameters.values()])
    if names[:len(tensors)] != tensors:
        raise TypeError(f"op {title}: its first parameters are {names}, not {tensors}")
    op = Op(title, "fused", composite=True, fused=True, kernel=kernel, tensors=tensors,
            params=names[len(tensors):], vjp=backward, namespace=namespace, doc=body.__doc__,
            nondiff=nondiff)
    op.body = op.direct = body
    wanted = parameters(backward)
    # every tensor argument is saved: the body may be run again on them
    saved = tensors + tuple([n for n in wanted if n not in ("grad", "needs", *tensors)])
    kinds = tuple(["tensor" if n in tensors else "result" if n == "result" else "value"
                   for n in saved])
    takes = tuple([0 if n == "grad" else 1 if n == "needs" else saved.index(n) + 2
                   for n in wanted])
    n = len(tensors)

    def apply(node: Any, grad: Any) -> Any:
        if grad_enabled() or type(grad) not in plain or (
                interceptors and not all(level.observes for level in levels.get())):
            return through_body(node, grad)
        values: list[Any] = [grad._array, [e is not None for e in node.edges]]
        for i, kind in enumerate(kinds):
            value = unpack(node, i)
            values.append(value._array if kind != "value" and isinstance(value, Tensor) else value)
        produced = backward(*[values[i] for i in takes])
        if type(produced) not in (tuple, list):
            produced = (produced,)
        return [None if p is None else wrap(p) for p in produced]

    def run_body(given: list[Any], wanted: list[int], rest: Any) -> Any:
        inputs = [None if t is None else graph_alias(t) if i in wanted else t
                  for i, t in enumerate(given)]
        return inputs, body(*inputs, *rest)

    def through_body(node: Any, grad: Any) -> Any:
        """The gradient as the graph of the body gives it: differentiable, and open to levels."""
        if node.saved is None:
            raise freed(node)
        given = [unpack(node, i) for i in range(n)]
        wanted = [i for i, e in enumerate(node.edges) if e is not None]
        with_graph = grad_enabled()
        inputs, result = within(grad_mode, True, run_body, given, wanted, node.rest)
        found = engine.run([(gradient_edge(result), grad)], with_graph, with_graph,
                           [gradient_edge(inputs[i]) for i in wanted], accumulate=False)
        produced = [None] * len(node.edges)
        for i, g in zip(wanted, found):
            produced[i] = g
        return produced

    Backward = node_class(node_name or class_name(title), op=op, saved_names=saved,
                          saved_kinds=kinds, apply=apply, rest=(),
                          differentiated=differentiated(op))
    op.Backward = Backward
    if unfolds:
        Backward.unfold = lambda node: unfolded(node, body, n) \
            if unfolds is True or unfolds(node) else node

    def call(*args: Any, **kwargs: Any) -> Any:
        if writes and kwargs and kwargs.get("out") is not None:
            out = kwargs.pop("out")
            return store(out, op, call(*args, **kwargs), args)
        if interceptors:
            return intercept(op, args, kwargs)
        return plain_call(*args, **kwargs)

    def plain_call(*args: Any, **kwargs: Any) -> Any:
        if kwargs or len(args) != len(names):
            if overrides.wanted(args, kwargs):
                return overrides.call(op, args, kwargs)
            if writes and "out" in kwargs:
                out = kwargs.pop("out")
                result = plain_call(*args, **kwargs)
                return result if out is None else store(out, op, result, args)
            if kwargs:
                try:
                    bound = signature.bind(*args, **kwargs)
                except TypeError:
                    return body(*args, **kwargs)            # says whose parameters they are
                bound.apply_defaults()
                args = tuple([bound.arguments[k] for k in names])
            elif len(args) < len(names):
                args = (*args, *defaults[len(args):])
            else:
                return body(*args)              # which raises
        arrays = []
        for tensor in args[:n]:
            if type(tensor) in plain:
                arrays.append(tensor._array)
            elif tensor is None:
                arrays.append(None)
            else:
                if overrides.wanted(args):
                    return overrides.call(op, args, {})
                return body(*args)
        if when is not None and not when(*args):
            return body(*args)
        made = kernel(*arrays, *args[n:])
        values = dict(zip(extras, made[1:])) if extras else {}
        r = made[0] if extras else made
        result = new_tensor()
        result._array = r if type(r) is ndarray else asarray(r)
        result._base = result._counter = result._edge = None
        if not grad_enabled():
            return result
        edges = edges_of(args[:n])
        if edges is None:
            return result
        node = Backward()
        node.edges, node.order = edges, next_order()
        node.shape, node.dtype = result._array.shape, result._array.dtype
        result._edge = node
        entries = []
        for key in saved:
            if key in tensors:
                entries.append(save_input(args[tensors.index(key)]))
            elif key == "result":
                entries.append(save_result(result))
            elif key in values:
                entries.append(values[key])
            else:
                entries.append(args[names.index(key)])
        node.saved = tuple(entries)
        node.rest = args[n:]
        if node_watchers:
            watch(node, args[:n])
        if packers:
            pack_node(node)
        return result

    op.function = op.call = fast.callable_of("closure", op, update_wrapper(call, body))
    op.plain_call = plain_call
    publish(op, op.function, method, aliases)
    return op.function
