"""A custom function as the graph has it: a call runs `forward` and gives the outputs history.

Levels of forward mode and vmap stand above this (`function_levels`).
"""
from __future__ import annotations

import warnings
from contextvars import ContextVar
from typing import Any

from flambeau._support.c_functions import type_name
from flambeau._support.scopes import within
from flambeau._support.source_locations import bump, counter_of
from flambeau.autograd.function_context import BackwardNode, Context, FunctionCtx, unwritten
from flambeau.core import views
from flambeau.core.autograd.graph import Output, next_order, save_input, saved_tensor_hooks
from flambeau.core.autograd.recording import node_watchers, watch
from flambeau.core.autograd.saved_hooks import pack_node
from flambeau.core.dtypes import FLOATING
from flambeau.core.modes import grad_enabled, grad_mode
from flambeau.core.tensor import LAZY, LEAF, Tensor, gradient_edge, tensor_types
from flambeau.ops.view.copying import alias


class FunctionMeta(type):
    """Gives each `Function` its class of nodes, named after it."""

    def __init__(cls, name: str, bases: Any, attrs: dict[str, Any]):
        super().__init__(name, bases, attrs)
        cls._backward_cls = type(f"{name}Backward", (BackwardNode,),
                                 {"__slots__": (), "_forward_cls": cls,
                                  "__module__": attrs.get("__module__", __name__)})
        cls._context_cls = type(f"{name}Backward", (Context,), {
            "__slots__": (), "__module__": "torch.autograd.function"})


class _SingleLevelFunction(FunctionCtx, metaclass=FunctionMeta):
    """What a custom function is where no level is entered: its static methods, unwritten. The
    methods of its context are seen on the class too."""

    _backward_cls: Any = None
    boxed_grads_call = False                    # `backward` gets its gradients as one list
    clear_saved_tensors_on_access = False       # and lets go of what was saved as it looks at it

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the outputs."""
        raise NotImplementedError("You must implement the forward function for custom "
                                  "autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Fill the context, where `forward` has none."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Gradients of the inputs, given those of the outputs."""
        raise NotImplementedError("You must implement either the backward or vjp method for your "
                                  "custom autograd.Function to use it with backward mode AD.")

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Tangents of the outputs, given those of the inputs."""
        raise NotImplementedError("You must implement the jvp function for custom "
                                  "autograd.Function to use it with forward mode AD.")


unwritten.append(_SingleLevelFunction.backward)


def call(cls: Any, args: tuple[Any, ...]) -> Any:
    """Run `forward` outside the graph, then put its outputs into it."""
    node = cls._backward_cls()
    edges, flags, needs = [], [], []
    needed = False
    for arg in args:
        if type(arg) in tensor_types:
            edge = None if arg._edge is None else gradient_edge(arg)
            edges.append(edge)
            flags.append(True)
            needs.append(edge is not None)
            needed = needed or edge is not None
        else:
            flags.append(False)
            needs.append(False)
    node.is_tensor_input, node.needs_input_grad = flags, tuple(needs)
    node.edges, node.order, node.saved = tuple(edges), 0, ()
    recorded = grad_enabled()
    output = within(grad_mode, False, _forward, cls, node, args)
    seen = observers.get()
    if (seen is None and recorded and needed and type(output) is Tensor
            and _is_new(output, node, args)):
        return _finish_new(node, output)
    single = not isinstance(output, tuple)
    outputs = (output,) if single else output
    if seen is not None:
        marked = ({id(t) for t in node.dirty_tensors}, {id(t) for t in node.non_differentiable})
    finished = finish(node, args, outputs, recorded and needed)
    if seen is not None:
        # a non-differentiable output may have been replaced by an alias of itself
        at = {id(new): id(old) for new, old in zip(finished, outputs)}
        seen.append((node, marked[0], {new for new, old in at.items() if old in marked[1]}))
    return finished[0] if single else tuple(finished)


def _forward(cls: Any, node: Any, args: tuple[Any, ...]) -> Any:
    if cls.setup_context is _SingleLevelFunction.setup_context:
        return cls.forward(node.context, *args)
    output = cls.forward(*args)
    cls.setup_context(node.context, args, output)
    return output


# Where forward mode puts a list, each call of a Function leaves its context and what it marked.
observers: ContextVar[Any] = ContextVar("function_observers", default=None)


def _is_new(output: Tensor, node: Any, args: tuple[Any, ...]) -> bool:
    """Is the only output a differentiable tensor that `forward` has made, and nothing marked?"""
    return (output._edge is None and output._base is None and not node.dirty_tensors
            and not node.non_differentiable and output._array.dtype in FLOATING
            and not any(output is a for a in args))


def _finish_new(node: Any, output: Tensor) -> Tensor:
    """What `finish` does where `_is_new`, which is what most functions return."""
    array = output._array
    shape, dtype = array.shape, array.dtype
    node._in_forward = node.simple = False
    node.order, node.outputs = next_order(), 1
    node.metas, node.results = [(shape, dtype, None)], [(shape, dtype)]
    node.shape, node.dtype = shape, dtype
    output._edge = node
    _save(node, (output,), [output])
    if node_watchers:
        watch(node, ())
    if saved_tensor_hooks:
        pack_node(node)
    return output


def finish(node: Any, args: tuple[Any, ...], outputs: tuple[Any, ...], recorded: bool) -> list[Any]:
    """Give the outputs their history, and the node what it saves."""
    node._in_forward = False
    dirty = {id(t) for t in node.dirty_tensors}
    without = {id(t) for t in node.non_differentiable}
    inputs = {id(a): a for a in args if type(a) in tensor_types}
    returned = {id(o) for o in outputs}
    for tensor in node.dirty_tensors:
        if id(tensor) not in inputs:
            if tensor._base is not None:
                raise RuntimeError("An input to mark_dirty was not an input of the Function: "
                                   "mark_dirty received a tensor that was not an input. If it is a "
                                   "view of an intermediate, this is not supported.")
            warnings.warn("Only input Tensors should be given to ctx.mark_dirty(). If a Tensor is "
                          "not an input, there is no need to pass it to mark_dirty().",
                          stacklevel=4)
            dirty.discard(id(tensor))
            continue
        if id(tensor) not in returned:
            raise RuntimeError("Some elements marked as dirty during the forward method were not "
                               "returned as output. The inputs that are modified inplace must all "
                               "be outputs of the Function.")
    node.order = next_order()
    node.outputs = len(outputs)
    node.simple = False             # its backward may register hooks on it
    node.metas = [(o._array.shape, o._array.dtype, None if type(o) is Tensor else _metadata_of(o))
                  if type(o) in tensor_types else None for o in outputs]
    node.results = [m[:2] if m and id(o) not in without and m[1] in FLOATING else None
                    for o, m in zip(outputs, node.metas)]
    if not node._materialize_non_diff_grads:
        node.metas = [None if id(o) in without else m for o, m in zip(outputs, node.metas)]
    if node.outputs == 1 and node.metas and node.metas[0]:
        node.shape, node.dtype = node.metas[0][:2]
    finished = []
    for i, output in enumerate(outputs):
        if type(output) not in tensor_types:
            finished.append(output)
            continue
        differentiable = (recorded and id(output) not in without
                          and output._array.dtype in FLOATING)
        edge: Any = None
        if differentiable:
            edge = node if node.outputs == 1 else Output(node, i, output._array.shape,
                                                         output._array.dtype)
        finished.append(_with_history(node, output, edge, inputs, dirty, len(outputs),
                                      id(output) in without, recorded))
    if recorded:
        _save(node, outputs, finished)
        if node_watchers:
            watch(node, ())
        if saved_tensor_hooks:
            pack_node(node)
    return finished


def _metadata_of(output: Tensor) -> Any:
    """A stand-in for a wrapper, from which zeros of its kind can be made."""
    return output.detach() if type(output) is not Tensor and hasattr(output, "_level") else None


def _with_history(node: Any, output: Tensor, edge: Any, inputs: dict[int, Any], dirty: set[int],
                  count: int, without: bool, recorded: bool) -> Tensor:
    if id(output) in dirty:
        bump(output)              # `forward` may have written where we could not see it
        if edge is None:
            return output
        if output._edge is LEAF:
            raise RuntimeError("a leaf Variable that requires grad has been used in an in-place "
                               "operation.")
        views.check_inplace(output, True)
        if output._base is not None and count > 1:
            raise RuntimeError("If your Function modifies inplace an input that is a view of "
                               "another Tensor, your Function cannot return more than one Tensor.")
        views.rebase(output, edge)
        return output
    if id(output) in inputs:
        # an input returned as it is becomes a view of itself: a new place in the graph
        if without:
            return output.detach()
        source = output
        output = within(grad_mode, recorded, alias, source) if type(source) is Tensor \
            else within(grad_mode, recorded, source.view_as, source)
        if output._edge is LAZY:
            output._view.made = "custom" if recorded else ""
    if edge is None:
        if without or not recorded:
            if recorded and output._edge is not None and output._edge is not LAZY:
                output._edge = None
            elif output._edge is LAZY and output._base is not None and grad_enabled() \
                    and any(output._base is i or output._base is i._base
                            for i in inputs.values()):
                output._view.made = "custom"
            return output
        return output
    if output._base is not None and output._edge is LAZY:
        if recorded:
            view = output._view
            view.node, view.version = edge, counter_of(output)[0]
            view.made = "custom" if count == 1 else "multi_output"
        return output
    output._edge = edge
    return output


def _save(node: Any, outputs: tuple[Any, ...], finished: list[Any]) -> None:
    kinds: list[str] = []
    entries: list[Any] = []
    own = {id(f): i for i, f in enumerate(finished) if type(f) in tensor_types}
    for tensor in node.to_save:
        if tensor is not None and type(tensor) not in tensor_types:
            raise TypeError("save_for_backward can only save variables, but argument "
                            f"{len(entries)} is of type {type_name(tensor)}")
        if tensor is None:
            kinds.append("tensor"), entries.append(None)
        elif id(tensor) in own and tensor._edge is not None:
            counter = counter_of(tensor)
            kinds.append("result")
            entries.append((tensor._array, counter, counter[0], own[id(tensor)]))
            if type(tensor) is not Tensor:
                node.result_state = [(type(f), f.__dict__) if type(f) in tensor_types else None
                                     for f in finished]
        else:
            kinds.append("tensor"), entries.append(save_input(tensor))
    node.saved, node.saved_kinds = tuple(entries), tuple(kinds)
    node.frees = bool(entries)
    node.to_save = node.dirty_tensors = node.non_differentiable = ()
