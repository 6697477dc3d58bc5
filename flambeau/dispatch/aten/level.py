"""Handing ops to `__torch_dispatch__`, of modes and of subclasses, and recording the graph above.

What a mode or a subclass does with an op happens below autograd: nothing in there is recorded. What
it returns becomes the result of the op's node, as if a kernel had computed it.
"""
from __future__ import annotations

import weakref
from collections.abc import Callable
from contextvars import ContextVar
from functools import cache
from typing import Any

from flambeau._support.scopes import within
from flambeau._support.source_locations import bump, counter_of
from flambeau.core import modes
from flambeau.core.autograd import engine
from flambeau.core.autograd.backward_errors import freed_error
from flambeau.core.autograd.grad_mode import no_grad
from flambeau.core.autograd.graph import (
    Output,
    Packed,
    check_version,
    next_order,
    node_class,
    save_input,
    save_result,
    saved_tensor_hooks,
    unpack,
)
from flambeau.core.autograd.recording import edges_of, make_view, record, replay_of, watch
from flambeau.core.autograd.saved_hooks import active as saved_hooks
from flambeau.core.autograd.saved_hooks import pack_node, set_aside
from flambeau.core.calling import overrides
from flambeau.core.dtypes import FLOATING
from flambeau.core.modes import Level, grad_enabled, grad_mode
from flambeau.core.op import Op, class_name
from flambeau.core.return_types import with_out
from flambeau.core.tensor import LAZY, Tensor, alias, gradient_edge, plain_types, tensor_types
from flambeau.core.views import check_inplace, rebase, rebase_to_zero_grad
from flambeau.dispatch.aten import forms
from flambeau.ops.inplace import _stand_in, save_anew
from flambeau.ops.view.copying import graph_alias

# Is what runs shown to a level, below the graph that records it?
recorded_above: ContextVar[bool] = ContextVar("recorded_above", default=False)


class DispatchLevel(Level):
    """Shows each op to `answer(overload, types, args, kwargs)`."""

    makes = True

    def __init__(self, answer: Callable[..., Any]):
        self.answer = answer

    def takes(self, op: Op) -> bool:
        """Is this composite shown as one?"""
        return forms.has_form(op)

    def ask(self, overload: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """Show one call; the level is not active meanwhile."""
        return within(forms.inside, False, self.answer, overload, dispatching_types(args, kwargs),
                      tuple(args), kwargs)

    def __call__(self, op: Op, canonical: tuple[Any, ...]) -> Any:
        if op.name == "graph_alias" and type(canonical[0]) in plain_types:
            return op.call(*canonical)          # of derivatives: the tensor, with another history
        return self._shown(op, canonical, None, op.call)

    def composite(self, op: Op, run: Any, args: Any, kwargs: Any) -> Any:
        """A composite that is shown as one op."""
        stack: Any = modes.levels.get()
        if args and getattr(op.declaration, "like", False) and not op.declaration.drawing:
            for at in range(len(stack) - 1, stack.index(self), -1):     # slices are made together
                whole, dim = getattr(stack[at], "unwrap", _in_one)(args[0])
                if dim is not None:
                    made = within(modes.levels, stack[:at], op.published, whole, *args[1:],
                                  **kwargs)
                    return stack[at].wrap(made, dim)
        return within(modes.levels, stack[:stack.index(self)], self._shown, op, args, kwargs, run)

    def body(self, run: Any, *args: Any, **kwargs: Any) -> Any:
        """Of a composite that is shown as what it is made of, which is C++ in PyTorch."""
        return within(forms.inside, True, run, *args, **kwargs)

    def storing(self, op: Op, args: Any, out: Any) -> Any:
        """A call whose results are written to `out`, if PyTorch's dispatcher has that as one."""
        call = forms.storing_call(op, args, out)
        if call is None:
            return NotImplemented
        within(modes.levels, modes.levels.get()[:-1], self.ask, call.overload, call.args,
               call.kwargs)
        return out if op.returns in (None, tuple, list) else with_out(op.returns)(*out)

    def member(self, overload: Any, values: list[Any]) -> Any:
        """A member that changes what its tensor looks at, and enters the graph by itself."""
        call = forms.member_call(overload, values)
        return self.ask(call.overload, call.args, call.kwargs)

    def _shown(self, op: Op, args: Any, kwargs: Any, run: Any) -> Any:
        other = forms.replacement_calls(op)
        if other is not None:
            found = within(modes.levels, (*modes.levels.get(), self), within, forms.inside, True,
                           other, *args, **(kwargs or {}))
            if found is not NotImplemented:
                return found
        call = forms.aten_call(op, args, kwargs)
        recorder = Recorder(op, args, kwargs, call, run, (*modes.levels.get(), self))
        found = within(recorded_above, recorder.active, within, grad_mode,
                       grad_enabled() and not recorder.active, self.ask, call.overload, call.args,
                       call.kwargs)
        if found is NotImplemented:
            raise TypeError(f"Multiple dispatch failed for '{call.overload.name()}'; all "
                            "__torch_dispatch__ handlers returned NotImplemented")
        if op.inplace and type(args[0]) not in plain_types:
            bump(args[0])                   # plain tensors count their writes themselves
        if recorder.active:
            aside = (*modes.levels.get(), self)                     # pack hooks are shown again
            return within(set_aside, aside, recorder.finish, found)
        if op.kind == "creation" and kwargs.get("requires_grad"):
            found.requires_grad_()          # a leaf of the user's, which the op knows nothing of
        return _own_result(op, call.form, found)


def _in_one(value: Any) -> tuple[Any, None]:
    """A value that has no slices."""
    return value, None


def dispatching_types(args: Any, kwargs: dict[str, Any]) -> tuple[type, ...]:
    """The types of tensors in a call that are not plain, each once."""
    return tuple({type(t): None for t in forms.tensors_in((*args, *kwargs.values()))
                  if type(t) not in plain_types})


def _own_result(op: Op, form: Any, found: Any) -> Any:
    """The results of `op` among those of the overload, which may have more."""
    if type(found) not in (tuple, list):
        return found
    if op.returns is None and not op.composite:
        return found[0]
    if op.returns in (None, tuple, list):
        return found
    return tuple.__new__(op.returns, found[:len(op.returns.__match_args__)])


def _value_before_write(target: Tensor, functional: Op, inputs: list[Any]) -> Tensor:
    """A tensor as it is before a write; if a node will need its values afterwards, a copy, which is
    shown."""
    if type(target) in plain_types:
        source = _stand_in(target, False)
        if _needs_self(functional, inputs):
            with no_grad():
                source._array = target.clone()._array
        return source
    source = alias(target._array, type(target))
    source.__dict__.update(target.__dict__)
    source._edge = None if target._edge is None else gradient_edge(target)
    return source


def _needs_self(functional: Op, inputs: list[Any]) -> bool:
    """Does a node of that op, with these inputs, use the first one's values?"""
    if functional.composite:
        return True
    if "self" not in functional.saved:
        return False
    users = functional.users[functional.saved.index("self")]
    return users is None or any(i < len(inputs) and inputs[i].requires_grad for i in users)


class Recorder:
    """The part of a call that is above the level: what enters the graph, views, writes."""

    def __init__(self, op: Op, args: Any, kwargs: Any, call: forms.AtenCall, run: Any,
                 levels: Any):
        self.op, self.args, self.kwargs, self.call, self.run = op, args, kwargs, call, run
        writes = not op.inplace and call.form is not None and call.form.schema.is_mutable
        self.active = grad_enabled() and op.kind != "creation" and not writes
        if not self.active:
            return
        self.inputs = forms.tensors_in((*args, *(kwargs or {}).values()))
        self.tracked = any(t.requires_grad for t in self.inputs)
        if op.inplace:
            self.target = self.inputs[0]
            check_inplace(self.target, self.tracked)
            if self.tracked:
                self.args = (within(modes.levels, levels, _value_before_write, self.target,
                                    op.functional, self.inputs), *args[1:])

    def finish(self, found: Any) -> Any:
        """The result as users get it."""
        op = self.op
        if op.inplace:
            return self._written()
        whole = tuple(found) if isinstance(found, (list, tuple)) else (found,)
        found = _own_result(op, self.call.form, found)
        several = isinstance(found, (list, tuple))
        parts = [self._part(f, several) for f in (found if several else (found,))]
        if self.tracked and _is_differentiable(op):
            self._record(op, parts, whole)
        if not several:
            return parts[0]
        return type(found)(parts) if type(found) in (tuple, list) else type(found)(*parts)

    def _part(self, found: Any, several: bool) -> Any:
        op = self.op
        if type(found) not in tensor_types:
            return found
        if any(found is t for t in self.inputs):
            found = _detached(found)
        first = self.args[0] if self.args else None
        if not op.view and found._base is not None:
            return _without_view(found)
        if not op.view or (found._base is None and type(found) in plain_types):
            return found
        made = "multi_output" if several else ""
        if type(found) not in plain_types:
            replay = None if several else replay_of(op, first, self.args, always=True)
            view = make_view(first, found._array, replay, made)
            found._base, found._counter = view._base, view._counter
            found._view, found._edge = view._view, LAZY
            return found
        replay = replay_of(op, first, self.args) if not several and (
            first._edge is LAZY or op.view == "replay") else None
        return make_view(first, found._array, replay, made)

    def _record(self, op: Op, parts: list[Any], whole: tuple[Any, ...]) -> None:
        """The node. Instances are kept as they are, which is no work for users' hooks; these see
        them after that."""
        within(saved_hooks, (), self._make_node, op, parts, whole)
        tensors = [p for p in parts if type(p) in tensor_types]
        edges = [p._view.node if p._edge is LAZY else p._edge for p in tensors]
        edge = next((e for e in edges if e is not None), None)
        if edge is None:
            return
        edge.node.dims_given = forms.dims_given(op, self.args)
        edge.node.of_number = self.call.overload._overloadname == "Scalar"
        own = any(type(p) not in plain_types for p in tensors)
        if own and modes.deriving.get():
            edge.node.result_state = [(type(p), getattr(p, "__dict__", None)) for p in parts]
        elif own or not saved_hooks.get():
            _keep_saved_results(edge, parts)
        if saved_tensor_hooks:
            pack_node(edge.node)

    def _make_node(self, op: Op, parts: list[Any], whole: tuple[Any, ...]) -> None:
        form = self.call.form
        result = parts if op.returns is not None else parts[0]
        if not op.composite and (form is None or form.grads is None):
            inputs = op.inputs(self.args)
            edges = edges_of(inputs)
            if edges is not None and any(_is_floating_tensor(p) for p in parts):
                record(op, self.args, edges, result)
        else:
            record_through_body(self, parts, whole)

    def _written(self) -> Any:
        target, op = self.target, self.op
        if not self.tracked:
            if target._edge is not None:
                rebase_to_zero_grad(target)
            return target
        result = alias(target._array, type(target))
        result.__dict__.update(target.__dict__)
        result._counter = target._counter
        if _is_differentiable(op.functional):
            self._record(op.functional, [result], (result,))
        edge = gradient_edge(result)
        if edge is None:
            rebase_to_zero_grad(target)
        else:
            save_anew(edge.node, result._array, target)
            rebase(target, edge)
        return target


def _keep_saved_results(edge: Any, results: list[Any]) -> None:
    """Let a node keep the results that it saved as tensors of their own, detached from the graph,
    which is a call that is shown; and so is the one that gives such a tensor out."""
    node = edge.node
    if "result" not in node.saved_kinds or modes.deriving.get():
        return
    node.saved = tuple([
        _keep_result(results[entry[3]], entry, node) if kind == "result" and type(entry) is tuple
        else entry for kind, entry in zip(node.saved_kinds, node.saved)])


def _keep_result(result: Any, entry: Any, node: Any) -> Any:
    if result._edge is None:                # it does not lead to the node
        return entry if type(result) in plain_types else Packed(result, lambda value: value, None)
    of, counter = weakref.ref(node), counter_of(result)
    written = counter[0]

    def again(value: Any) -> Any:
        value = _detached(check_version(of(), value, written))
        if grad_enabled():
            value._edge = of()
        return value
    kept = within(modes.levels, set_aside.get(), _detached, result)
    kept._counter = counter                 # whatever has made it, it is the result's memory
    return Packed(kept, again, None)


def _without_view(found: Any) -> Any:
    """A result that was made as a view below autograd, as the tensor that it is above."""
    result = found if type(found) not in plain_types else alias(found._array, type(found))
    result._base, result._counter, result._edge = None, found._counter, None
    return result


def _detached(tensor: Any) -> Any:
    """An instance of a subclass outside the graph, which the subclass makes."""
    rules = overrides.suspended.set(None)
    try:
        with no_grad():
            return tensor.detach()
    finally:
        overrides.suspended.reset(rules)


def _is_floating_tensor(value: Any) -> bool:
    return type(value) in tensor_types and value._array.dtype in FLOATING


def _is_differentiable(op: Op) -> bool:
    return op.composite or op.is_differentiable


# ---- nodes that differentiate what the op computes -----------------------------------------------


class _Placeholder:
    """Stands for the `index`-th saved tensor in the arguments of a call."""

    def __init__(self, index: int):
        self.index = index


def _fill_placeholders(value: Any, tensors: list[Any]) -> Any:
    """Arguments with tensors in the places of those that were saved."""
    if type(value) is _Placeholder:
        return tensors[value.index]
    if type(value) in (list, tuple):
        return type(value)([_fill_placeholders(v, tensors) for v in value])
    if type(value) is dict:
        return {k: _fill_placeholders(v, tensors) for k, v in value.items()}
    return value


def _placeholders(value: Any, places: dict[int, int]) -> Any:
    """Arguments with places for the tensors."""
    if type(value) in tensor_types:
        return _Placeholder(places[id(value)])
    if type(value) in (list, tuple):
        return type(value)([_placeholders(v, places) for v in value])
    if type(value) is dict:
        return {k: _placeholders(v, places) for k, v in value.items()}
    return value


class _Call:
    """A recorded call: what it was given and what it gave, without the tensors."""

    def __init__(self, recorder: Recorder, inputs: list[Any], found: tuple[Any, ...]):
        op, form = recorder.op, recorder.call.form
        self.run: Any = op.functional.call if op.inplace and not op.functional.composite else (
            op.functional.direct if op.inplace else recorder.run)
        self.formula = form.grads if form is not None else None
        places = {id(t): i for i, t in reversed(list(enumerate(inputs))) if t is not None}
        if op.inplace:
            places[id(recorder.target)] = places[id(recorder.args[0])]
        self.args = _placeholders(tuple(recorder.args), places)
        self.kwargs = _placeholders(recorder.kwargs or {}, places)
        self.count = len(inputs)
        self.values: dict[str, Any] = {}
        if self.formula is not None:
            names = [a.name for a in form.schema.arguments]
            defaults = {a.name: a.default_value for a in form.schema.arguments}
            self.values = defaults | dict(zip(names, _placeholders(recorder.call.values, places)))
        self.extras = {f"result{i}": f for i, f in enumerate(found) if i}

    def apply(self, node: Any, grad: Any) -> Any:
        if node.saved is None:
            raise freed_error(node)
        inputs = [unpack(node, i) for i in range(self.count)]
        if self.formula is None:
            return self.backward_through_body(node, inputs, grad)
        given = {**self.values, **self.extras, "grad": grad,
                 "needs": [e is not None for e in node.edges]}
        names = forms.own_parameters(self.formula)
        if "result" in names:
            given["result"] = unpack(node, self.count)
        produced = self.formula(*[_fill_placeholders(given[n], inputs) for n in names])
        if type(produced) not in (tuple, list):
            produced = (produced,)
        return (*produced, *[None] * (len(node.edges) - len(produced)))

    def _run_body(self, given: list[Any], wanted: list[int]) -> Any:
        inputs = [graph_alias(t) if i in wanted else t for i, t in enumerate(given)]
        return inputs, self.run(*_fill_placeholders(self.args, inputs),
                                **_fill_placeholders(self.kwargs, inputs))

    def backward_through_body(self, node: Any, given: list[Any], grad: Any) -> Any:
        """The gradients as the graph of what the op computes gives them."""
        with_graph = grad_enabled()
        wanted = [i for i, e in enumerate(node.edges) if e is not None]
        inputs, found = within(grad_mode, True, self._run_body, given, wanted)     # which is shown
        parts = [p for p in (found if type(found) in (tuple, list) or isinstance(found, tuple)
                             else (found,)) if type(p) in tensor_types]
        grads = grad if type(grad) is list else [grad]
        roots = [(gradient_edge(p), g) for p, g in zip(parts, grads)
                 if g is not None and p.requires_grad]
        gradients = engine.run(roots, with_graph, with_graph,
                               [gradient_edge(inputs[i]) for i in wanted], accumulate=False)
        produced = [None] * len(node.edges)
        for i, g in zip(wanted, gradients):
            produced[i] = g
        return produced


def record_through_body(recorder: Recorder, parts: list[Any], found: tuple[Any, ...]) -> None:
    """Make the node of a call by a formula of PyTorch's ops; where derivatives of derivatives are
    wanted, or there is no formula, by the graph of what the op computes."""
    op, shown = recorder.op, recorder.call
    inputs: list[Any] = []
    if shown.form is not None and shown.form.grads is not None:
        inputs = [t if type(t) in tensor_types else None
                  for t, a in zip(shown.values, shown.form.schema.arguments)
                  if a.is_tensor and not a.declared.rstrip("?").endswith("]")]
    inputs += [t for t in {id(t): t for t in recorder.inputs}.values()
               if all(t is not i for i in inputs)]
    if op.inplace:                          # what the target was before
        inputs = [recorder.args[0] if t is recorder.target else t for t in inputs]
    edges = edges_of(inputs)
    results = [p for p in parts if type(p) in tensor_types]
    if edges is None or not any(map(_is_floating_tensor, results)):
        return
    node = _node_of(_node_name(op))()
    node.edges, node.order, node.op = edges, next_order(), op
    if len(results) == 1:
        node.shape, node.dtype = results[0]._array.shape, results[0]._array.dtype
        _set_edge(results[0], node)
    else:
        node.outputs, node.simple = len(results), False
        node.results = [(r._array.shape, r._array.dtype) for r in results]
        for i, r in enumerate(results):
            if _is_floating_tensor(r):
                _set_edge(r, Output(node, i, r._array.shape, r._array.dtype))
    call = _Call(recorder, inputs, found)
    saved = [save_input(t) for t in inputs]
    kinds, names = ["tensor"] * len(inputs), [f"input{i}" for i in range(len(inputs))]
    if call.formula is not None and "result" in forms.own_parameters(call.formula):
        saved.append(save_result(results[0]))
        kinds.append("result"), names.append("result")
    node.saved, node.saved_kinds, node.saved_names = tuple(saved), tuple(kinds), tuple(names)
    node.call = call
    watch(node, inputs)


@cache
def _node_of(name: str) -> Any:
    return node_class(name, frees=True, apply=lambda node, grad: node.call.apply(node, grad))


def _set_edge(result: Any, edge: Any) -> None:
    if result._edge is LAZY:
        result._view.node = edge
    else:
        result._edge = edge


def _node_name(op: Op) -> str:
    made = op.__dict__.get("Backward")
    return class_name(op.name) if made is None else made.__name__
