"""Registering hooks on tensors and nodes."""
from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from flambeau.core.devices import cpu
from flambeau.core.dtypes import from_numpy_dtype
from flambeau.core.engine import accumulate_into
from flambeau.core.graph import LeafHooks, Node, hooks_of
from flambeau.core.modes import grad_enabled
from flambeau.core.promotion import type_name
from flambeau.core.shapes import Size
from flambeau.core.tensor import LOOKUP, Tensor, basis, gradient_edge, tensor_types
from flambeau.ops.view.conversion import clone


class RemovableHandle:
    """Removes a hook: `handle.remove()`, or at the end of `with handle:`."""

    next_id = 0

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None):
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        extra = extra_dict if isinstance(extra_dict, list) else [extra_dict] if extra_dict is not \
            None else []
        self.extra_dict_ref: tuple[Any, ...] = tuple(weakref.ref(d) for d in extra)

    def remove(self) -> None:
        for ref in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = ref()
            if hooks is not None and self.id in hooks:
                del hooks[self.id]

    def __getstate__(self) -> Any:
        return (self.hooks_dict_ref(), self.id, tuple(r() for r in self.extra_dict_ref))

    def __setstate__(self, state: Any) -> None:
        hooks, self.id, extra = state[0], state[1], state[2] if len(state) > 2 else ()
        self.hooks_dict_ref = weakref.ref(OrderedDict() if hooks is None else hooks)
        self.extra_dict_ref = tuple(weakref.ref(OrderedDict() if d is None else d) for d in extra)
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.remove()


def register(hooks: OrderedDict[int, Any], hook: Callable[..., Any]) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def leaf_hooks(leaf: Tensor) -> LeafHooks:
    if leaf._hooks is None:
        leaf._hooks = LeafHooks()
    return leaf._hooks


def tensor_hooks_of(tensor: Tensor) -> Any:
    edge = tensor._edge if tensor._edge is None else gradient_edge(tensor)
    if edge is None or edge is tensor:
        return tensor._hooks.tensor if tensor._hooks is not None else None
    hooks = edge.node.hooks
    return None if hooks is None else hooks.tensor.get(edge.index)


def register_tensor_hook(tensor: Tensor, hook: Callable[..., Any]) -> RemovableHandle:
    edge = gradient_edge(tensor)
    if edge is None:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if edge is tensor:
        return register(leaf_hooks(tensor).tensor, hook)
    hooks = hooks_of(edge.node).tensor.setdefault(edge.index, OrderedDict())
    return register(hooks, hook)


def register_post_accumulate_hook(tensor: Tensor, hook: Callable[..., Any]) -> RemovableHandle:
    if not tensor.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if tensor.grad_fn is not None:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    return register(leaf_hooks(tensor).accumulated, hook)


def retain_grad(tensor: Tensor) -> None:
    edge = gradient_edge(tensor)
    if edge is None:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if edge is tensor or tensor._retains_grad:
        return
    reference = weakref.ref(tensor)
    tensor._retains_grad = True

    def keep(grad: Any) -> None:
        target = reference()
        if target is not None and grad is not None:
            old = target._grad
            target._grad = clone(grad) if old is None else old + grad
    hooks_of(edge.node).retain[edge.index] = keep


def move_retained(tensor: Tensor, old: Any, new: Any) -> None:
    """After an in-place write, `retain_grad` follows the tensor to its new node."""
    if old is None or isinstance(old, Tensor):
        return
    hooks = old.node.hooks
    keep = None if hooks is None else hooks.retain.pop(old.index, None)
    if keep is not None:
        hooks_of(new.node).retain[new.index] = keep


basis.register_hook, basis.move_retained = register, move_retained


# ---- running them --------------------------------------------------------------------------------


def _name(hook: Any) -> str:
    return f"hook '{getattr(hook, '__name__', type(hook).__name__)}'"


def check_replacement(grad: Any, answer: Any, hook: Any = None) -> Any:
    """What a hook returned in place of a gradient."""
    if type(answer) not in tensor_types:
        raise TypeError(f"expected Variable, but hook returned '{type(answer).__name__}'")
    if grad is None:
        return answer
    if answer._array.shape != grad._array.shape:
        raise RuntimeError(f"{_name(hook)} has changed the size of value: "
                           f"{list(grad._array.shape)} became {list(answer._array.shape)}")
    if answer._array.dtype != grad._array.dtype:
        raise RuntimeError(f"{_name(hook)} has changed the type of value (was {grad.type()} got "
                           f"{answer.type()})")
    return answer


def _replacements(before: Any, answer: Any, hook: Any) -> tuple[Any, ...]:
    """What a hook of a node returned in place of all of its gradients."""
    if not isinstance(answer, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(answer).__name__}'")
    if len(answer) != len(before):
        raise RuntimeError(f"{_name(hook)} has returned an incorrect number of values (got "
                           f"{len(answer)}, but expected {len(before)})")
    for old, new in zip(before, answer):
        if new is not None:
            if old is None:
                raise RuntimeError("can't replace a None gradient with a non-None value")
            check_replacement(old, new, hook)
    return answer


def run_tensor_hooks(node: Node, hooks: Any, grad: Any) -> Any:
    """Hooks of the tensors that the node made, then `retain_grad`."""
    grads = [grad] if node.outputs == 1 else [None] * node.outputs if grad is None else list(grad)
    for index, registered in hooks.tensor.items():
        for hook in list(registered.values()):
            answer = hook(grads[index])
            if answer is not None:
                grads[index] = check_replacement(grads[index], answer, hook)
    for index, keep in hooks.retain.items():
        keep(grads[index])
    return grads[0] if node.outputs == 1 else grads


def run_prehooks(node: Node, hooks: Any, grad: Any) -> Any:
    """The node's own hooks on the gradients of its outputs."""
    grads = (grad,) if node.outputs == 1 else tuple(grad)
    for hook in list(hooks.pre.values()):
        answer = hook(grads)
        if answer is not None:
            grads = _replacements(grads, answer, hook)
    return grads[0] if node.outputs == 1 else list(grads)


def run_posthooks(node: Node, hooks: Any, produced: Any, grad: Any) -> Any:
    outputs = (grad,) if node.outputs == 1 else tuple(grad or (None,) * node.outputs)
    shown = node.of_inputs(tuple(produced))
    for hook in list(hooks.post.values()):
        answer = hook(shown, outputs)
        if answer is not None:
            shown = _replacements(shown, answer, hook)
    if node.differentiated is None:
        return shown
    found = dict(zip(node.differentiated, shown))
    return tuple([found.get(i) for i in range(len(node.edges))])


basis.run_tensor_hooks = run_tensor_hooks
basis.run_prehooks, basis.run_posthooks = run_prehooks, run_posthooks
basis.check_replacement = check_replacement


# ---- leaves as nodes ----------------------------------------------------------------------------

class AccumulateGrad(Node):
    """Stands for a leaf where users look at the graph as nodes. The engine itself adds to leaves
    directly; this is made when somebody asks, and kept while it carries hooks."""

    __slots__ = ()

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"

    def __init__(self, variable: Tensor):
        self.variable = variable
        self.edges, self.saved = (), ()
        self.shape, self.dtype = variable._array.shape, variable._array.dtype
        self.order = -(2 ** 63)

    def keep(self) -> None:
        self.variable._accumulator = self

    def apply(self, grad: Any) -> Any:
        accumulate_into(self.variable, grad, grad_enabled(), 0)
        return ()


AccumulateGrad.__module__ = "torch.autograd"


def takes_no_gradient(leaf: Tensor) -> bool:
    """Does a gradient end at this edge without being kept? Such are a leaf that was told not to
    require grad after it was used, and a view made without recording: that counts as requiring
    grad where its base does, but has no node, and is no leaf of its own either."""
    edge = leaf._edge
    return edge is None or (edge is LOOKUP and leaf._view.node is None)


def accumulator_of(leaf: Tensor) -> AccumulateGrad | None:
    """The node that stands for `leaf`: one object for as long as anybody holds it; None for a view
    that is no leaf of its own."""
    if leaf._edge is LOOKUP and takes_no_gradient(leaf):
        return None
    known = leaf._accumulator
    if known is not None and not isinstance(known, AccumulateGrad):
        known = known()
    if known is None:
        known = AccumulateGrad(leaf)
        leaf._accumulator = weakref.ref(known)
    return known


class InputMetadata:
    """Shape and type of the gradient that an output of a node expects."""

    def __init__(self, node: Node, output: Any):
        nested = node.__dict__.get("_nested_shape")
        self.shape = Size(output.shape) if nested is None else nested
        self.dtype, self.device = from_numpy_dtype(output.dtype), cpu
        self.is_nested_tensor, self.is_cpp_nested_tensor = nested is not None, False


basis.accumulator_of, basis.input_metadata = accumulator_of, InputMetadata
basis.takes_no_gradient = takes_no_gradient


def check_grad(tensor: Tensor, grad: Any) -> None:
    """Raise if `grad` cannot be the gradient of `tensor`: its type, device or shape is wrong."""
    if not isinstance(grad, Tensor):
        raise TypeError("assigned grad expected to be a Tensor or None but got grad of type "
                        f"{type(grad).__name__}")
    if grad is tensor:
        raise RuntimeError("can't assign Variable as its own grad")
    wanted = None if tensor._hooks is None else tensor._hooks.grad_dtype
    if wanted != "any" and grad.dtype is not (wanted or tensor.dtype):
        from flambeau.ops.random.fills import C_NAMES
        found = C_NAMES.get(grad.dtype.name, type_name(grad.dtype).lower())
        raise RuntimeError(
            f"attempting to assign a gradient with dtype '{found}' to a "
            f"tensor with grad_dtype '{type_name(wanted or tensor.dtype)}'. The gradient must "
            "match the tensor's grad_dtype (defaults to the tensor's dtype). You can set the "
            "tensor's grad_dtype attribute with a specific dtype, or None to allow any dtype.")
    if grad.device != tensor.device:
        raise RuntimeError(f"attempting to assign a gradient with device type '{grad.device.type}' "
                           f"to a tensor with device type '{tensor.device.type}'. Please ensure "
                           "that the gradient and the tensor are on the same device")
    if grad._array.shape != tensor._array.shape:
        raise RuntimeError("attempting to assign a gradient of size "
                           f"'{list(grad._array.shape)}' to a tensor of size "
                           f"'{list(tensor._array.shape)}'. Please ensure that the gradient and "
                           "the tensor are the same size")


basis.check_grad = check_grad
