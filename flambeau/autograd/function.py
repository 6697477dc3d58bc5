"""`Function`: an op whose derivative the user writes.

The context that `forward` and `backward` get is the node of the graph, with attributes of its own.
"""
from __future__ import annotations

import functools
import inspect
import warnings
from contextvars import ContextVar
from typing import Any

from flambeau._support.own_methods import shown_as
from flambeau._support.scopes import within
from flambeau._support.source_locations import bump, counter_of
from flambeau.autograd.function_context import BackwardCFunction as BackwardCFunction
from flambeau.autograd.function_context import BackwardNode, Context, unwritten
from flambeau.autograd.function_context import FunctionCtx as FunctionCtx
from flambeau.autograd.grad_mode import no_grad
from flambeau.autograd.saved_hooks import pack_node
from flambeau.core import modes, views
from flambeau.core.autograd.graph import (
    Node,
    Output,
    next_order,
    output_edges,
    save_input,
    saved_tensor_hooks,
)
from flambeau.core.autograd.recording import node_watchers, watch
from flambeau.core.dtypes import FLOATING
from flambeau.core.modes import grad_enabled, grad_mode, interceptors, levels
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


class Function(metaclass=FunctionMeta):
    """An op with a derivative of the user's own: subclass it and call `apply`.

    `forward(ctx, *args)` computes; `backward(ctx, *grad_outputs)` gives a gradient for each
    argument of `forward` (None for those that have none). `ctx.save_for_backward` keeps tensors
    between them. Or `forward(*args)` without a context, and `setup_context(ctx, inputs, output)`.
    `jvp(ctx, *tangents)` is the rule of forward mode, `vmap(info, in_dims, *args)` that of
    batching; `generate_vmap_rule = True` makes the latter from the others.

    >>> import flambeau
    >>> class Square(Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         x, = ctx.saved_tensors
    ...         return 2 * x * grad
    >>> x = flambeau.tensor(3.0, requires_grad=True)
    >>> Square.apply(x).backward(); x.grad
    tensor(6.)
    """

    generate_vmap_rule = False
    _backward_cls: Any = None

    def __init__(self, *args: Any, **kwargs: Any):
        warnings.warn(f"{type(self)} should not be instantiated. Methods on autograd functions are "
                      "all static, so you should invoke them on the class itself. Instantiating an "
                      "autograd function will raise an error in a future version of PyTorch.",
                      DeprecationWarning, stacklevel=2)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("Legacy autograd function with non-static forward method is deprecated. "
                           "Please use new-style autograd function with static forward method. "
                           "(Example: https://pytorch.org/docs/stable/autograd.html"
                           "#torch.autograd.Function)")

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
    @shown_as("_SingleLevelFunction.jvp")
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Tangents of the outputs, given those of the inputs."""
        raise NotImplementedError("You must implement the jvp function for custom "
                                  "autograd.Function to use it with forward mode AD.")

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """Outputs for all slices at once, and where the slices are in them."""
        raise NotImplementedError("To use autograd.Function with vmap, you must either override "
                                  "the vmap staticmethod or set generate_vmap_rule=True.")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        if kwargs or cls.setup_context is not Function.setup_context:
            args = _bind(cls, args, kwargs)
        if interceptors and levels.get():
            from flambeau.autograd.function_levels import apply_under_level
            answer = apply_under_level(cls, args)
            if answer is not NotImplemented:
                return answer
        return call(cls, args)


unwritten.append(Function.backward)


def _bind(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """All arguments by position, as `backward` counts them. `setup_context` is shown those that
    have their default too; else those after the last that was given are left to `forward`."""
    bare = cls.setup_context is not Function.setup_context
    signature, code = inspect.signature(cls.forward), getattr(cls.forward, "__code__", None)
    if not kwargs and code is not None and code.co_argcount == len(args):
        return args
    bound = signature.bind(*args, **kwargs) if bare else signature.bind(None, *args, **kwargs)
    for name in bound.kwargs:
        known = signature.parameters.get(name)
        if name not in kwargs or known is None or known.kind is not _BY_EITHER:
            raise TypeError(f"forward() got an unexpected keyword argument '{name}'")
    last = list(signature.parameters).index(list(bound.arguments)[-1])
    bound.apply_defaults()
    return bound.args if bare else bound.args[1:max(last, len(args)) + 1]


_BY_EITHER = inspect.Parameter.POSITIONAL_OR_KEYWORD


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
    if cls.setup_context is Function.setup_context:
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
                            f"{len(entries)} is of type {type(tensor).__name__}")
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


# ---- decorators and helpers ----------------------------------------------------------------------


def once_differentiable(fn: Any) -> Any:
    """A `backward` that cannot itself be differentiated: doing so raises RuntimeError."""
    @functools.wraps(fn)
    def wrapper(ctx: Any, *grads: Any) -> Any:
        with no_grad():
            produced = fn(ctx, *grads)
        if not modes.is_grad_enabled() or not any(
                isinstance(g, Tensor) and g.requires_grad for g in grads):
            return produced
        single = not isinstance(produced, tuple)
        results = _undifferentiable((produced,) if single else produced)
        return results[0] if single else results
    return wrapper


class Error(Node):
    """A node whose backward raises RuntimeError with a message."""

    __slots__ = ()
    frees = False

    def __init__(self, message: str):
        self.message = message

    def apply(self, grad: Any) -> Any:
        raise RuntimeError(self.message)

    def record(self, edges: tuple[Any, ...], results: list[Tensor]) -> None:
        """Become the history of `results`."""
        self.edges, self.saved, self.order = edges, (), next_order()
        self.outputs, self.simple = len(results), False
        self.results = [(t._array.shape, t._array.dtype) for t in results]
        self.shape, self.dtype = self.results[0]
        for tensor, edge in zip(results, output_edges(self)):
            tensor._edge = edge


def _undifferentiable(produced: tuple[Any, ...]) -> tuple[Any, ...]:
    """The gradients as outputs of one node that refuses to be differentiated."""
    results = [p.detach() if isinstance(p, Tensor) else p for p in produced]
    tensors = [r for r in results if isinstance(r, Tensor)]
    leaves = [r.detach().requires_grad_() if isinstance(r, Tensor) else None for r in results]
    Error("trying to differentiate twice a function that was marked with @once_differentiable"
          ).record(tuple(leaves), tensors)
    return tuple(results)


class InplaceFunction(Function):
    """Kept for old code: a Function whose constructor takes `inplace`."""

    def __init__(self, inplace: bool = False):
        super().__init__()
        self.inplace = inplace


class NestedIOFunction(Function):
    """Kept for old code: nested inputs and outputs of a Function are not supported."""

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("NestedIOFunction: pass tensors as separate arguments")


def traceable(function_class: Any) -> Any:
    """Marks a Function as traceable; nothing depends on it."""
    function_class.is_traceable = True
    return function_class
