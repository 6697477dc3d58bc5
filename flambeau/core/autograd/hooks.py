"""Hooks on tensors and nodes: where they are kept, how they are registered, what runs them.

A hook sees a gradient on its way and may give another in its place. Those of a tensor that an op
made are kept by its node, since the gradient arrives there; those of a leaf by the leaf.
"""
from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flambeau._support.c_functions import type_name as type_name_of
from flambeau.core.tensor import Tensor, gradient_edge, tensor_types

if TYPE_CHECKING:
    from flambeau.core.autograd.graph import Node


class NodeHooks:
    """All hooks of one node, in the order in which they run: those of its output tensors, then
    `retain_grad`, then `pre`; the node; then `post`."""

    __slots__ = ("post", "pre", "retain", "tensor")

    def __init__(self) -> None:
        self.tensor: dict[int, OrderedDict[int, Any]] = {}
        self.retain: dict[int, Any] = {}
        self.pre: OrderedDict[int, Any] = OrderedDict()
        self.post: OrderedDict[int, Any] = OrderedDict()


def hooks_of(node: Node) -> NodeHooks:
    """The hooks of `node`, made on first demand."""
    if node.hooks is None:
        node.hooks = NodeHooks()
        node.simple = False
        node.keep()
    return node.hooks


class LeafHooks:
    """Hooks of a leaf tensor: on its gradient, and after that was accumulated; `grad_dtype` is the
    type its gradients are to have, None for its own, "any" for whatever arrives."""

    __slots__ = ("accumulated", "grad_dtype", "tensor")

    def __init__(self) -> None:
        self.tensor: OrderedDict[int, Any] = OrderedDict()
        self.accumulated: OrderedDict[int, Any] = OrderedDict()
        self.grad_dtype: Any = None


# ---- registering ---------------------------------------------------------------------------------

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
        """Take the hook away. Once it is gone this does nothing."""
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

    def __exit__(self, type: Any, value: Any, tb: Any) -> None:
        self.remove()


RemovableHandle.__module__ = "flambeau.utils.hooks"


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
            target._grad = grad.clone() if old is None else old + grad
    hooks_of(edge.node).retain[edge.index] = keep


def move_retained_grad(tensor: Tensor, old: Any, new: Any) -> None:
    """After an in-place write, `retain_grad` follows the tensor to its new node."""
    if old is None or isinstance(old, Tensor):
        return
    hooks = old.node.hooks
    keep = None if hooks is None else hooks.retain.pop(old.index, None)
    if keep is not None:
        hooks_of(new.node).retain[new.index] = keep


# ---- running them --------------------------------------------------------------------------------


def _name(hook: Any) -> str:
    return f"hook '{getattr(hook, '__name__', type(hook).__name__)}'"


def check_replacement(grad: Any, answer: Any, hook: Any = None) -> Any:
    """What a hook returned in place of a gradient."""
    if type(answer) not in tensor_types:
        raise TypeError(f"expected Variable, but hook returned '{type_name_of(answer)}'")
    if grad is None:
        return answer
    if answer._array.dtype != grad._array.dtype:
        raise RuntimeError(f"{_name(hook)} has changed the type of value (was {grad.type()} got "
                           f"{answer.type()})")
    if answer._array.shape != grad._array.shape:
        raise RuntimeError(f"{_name(hook)} has changed the size of value\n"
                           f"{list(grad._array.shape)} became {list(answer._array.shape)}")
    return answer


def _replacements(before: Any, answer: Any, hook: Any) -> tuple[Any, ...]:
    """What a hook of a node returned in place of all of its gradients."""
    if not isinstance(answer, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type_name_of(answer)}'")
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
    grads = node.of_outputs(grad)
    for hook in list(hooks.pre.values()):
        answer = hook(grads)
        if answer is not None:
            grads = _replacements(grads, answer, hook)
    return node.to_outputs(grads)


def run_posthooks(node: Node, hooks: Any, produced: Any, grad: Any) -> Any:
    """The node's own hooks on the gradients of its inputs."""
    outputs = node.of_outputs(grad)
    shown = node.of_inputs(tuple(produced))
    for hook in list(hooks.post.values()):
        answer = hook(shown, outputs)
        if answer is not None:
            shown = _replacements(shown, answer, hook)
    if node.differentiated is None:
        return shown
    found = dict(zip(node.differentiated, shown))
    return tuple([found.get(i) for i in range(len(node.edges))])
