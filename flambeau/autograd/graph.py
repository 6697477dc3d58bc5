"""Looking at the graph, and hooks on it."""
from __future__ import annotations

import inspect
import threading
from collections import OrderedDict, defaultdict  # noqa: F401
from collections.abc import Callable, Iterable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

import flambeau
from flambeau._support.lazy.modules import lazy_names
from flambeau._support.own_methods import adopt, of_class
from flambeau._support.source_locations import bump, counter_of
from flambeau.autograd.function_context import FunctionCtx
from flambeau.autograd.grad_mode import no_grad
from flambeau.core.autograd import engine
from flambeau.core.autograd.graph import AccumulateGrad, accumulator_of  # noqa: F401
from flambeau.core.autograd.graph import Node as CoreNode
from flambeau.core.autograd.hooks import RemovableHandle, hooks_of  # noqa: F401
from flambeau.core.autograd.saved_hooks import disable_saved_tensors_hooks, saved_tensors_hooks
from flambeau.core.tensor import Tensor, gradient_edge, tensor_types
from flambeau.schema.errors import type_name


class _NodeMeta(type):
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if args or kwargs:
            raise TypeError(f"{cls.__name__}() takes no arguments")
        raise TypeError("Can't instantiate abstract class Node with abstract methods "
                        "_input_metadata, _register_hook_dict, _sequence_nr, metadata, name, "
                        "next_functions, register_hook, register_prehook")

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, (CoreNode, FunctionCtx))

    def __subclasscheck__(cls, kind: type) -> bool:
        return kind is cls or issubclass(kind, CoreNode)


class Node(metaclass=_NodeMeta):
    """What every node of the graph is an instance of: `isinstance(y.grad_fn, Node)`."""

    __signature__ = inspect.Signature()

    name = CoreNode.name
    metadata = CoreNode.metadata
    next_functions = CoreNode.next_functions
    register_hook = CoreNode.register_hook
    register_prehook = CoreNode.register_prehook


class GradientEdge(NamedTuple):
    """Where a gradient goes: a node, and for which of its outputs."""

    node: Any
    output_nr: int
    ownership_token: Any = None


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge to which the gradient of `tensor` goes: to its `grad_fn`, or its accumulator.

    >>> import flambeau
    >>> y = flambeau.ones(2, requires_grad=True) * 2
    >>> get_gradient_edge(y).node.name()
    'MulBackward0'
    """
    edge = gradient_edge(tensor) if tensor.requires_grad else None
    if edge is None:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not "
                           "require gradients")
    if type(edge) in tensor_types:
        return GradientEdge(accumulator_of(edge), 0)
    return GradientEdge(*edge.node.seen(edge.index))


def increment_version(tensor: Any) -> None:
    """Count a write to a tensor (or several) that autograd did not see."""
    tensors = (tensor,) if isinstance(tensor, Tensor) else tensor
    if not isinstance(tensors, Iterable):
        raise RuntimeError("increment_version expect a Iterable[Tensor] as input")
    tensors = tuple(tensors)
    if not all(isinstance(one, Tensor) for one in tensors):
        raise RuntimeError("increment_version expects each element of the iterable to be a tensor")
    for one in tensors:
        bump(one)


class save_on_cpu(saved_tensors_hooks):
    """Inside, saved tensors are moved to the CPU and back in backward; here they are there."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda"):
        getattr(flambeau, device_type, None)        # of which its memory would be
        super().__init__(lambda tensor: tensor.cpu(), lambda packed: packed)


class _MultiHandle(RemovableHandle):
    """Removes several hooks at once."""

    def __init__(self, handles: Sequence[RemovableHandle]):
        self.handles = tuple(handles)

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()

    def __getstate__(self) -> Any:
        return self.handles

    def __setstate__(self, state: Any) -> None:
        self.handles = state


def register_multi_grad_hook(tensors: Sequence[Tensor], fn: Callable[..., Any], *,
                             mode: str = "all") -> RemovableHandle:
    """Call `fn` when the gradients of `tensors` have been computed.

    `mode="all"`: once per backward pass with the list of all gradients (None where there is none);
    `"any"`: with the first of them.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    lock = threading.Lock()
    if mode == "any":
        return _any_hook(tensors, fn, lock)
    counts: WeakKeyDictionary[Any, int] = WeakKeyDictionary()       # by pass
    buffers: WeakKeyDictionary[Any, list[Any]] = WeakKeyDictionary()
    expected: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
    edges = [gradient_edge(t) for t in tensors]
    for edge in edges:
        if edge is None:
            raise AssertionError("Expected gradient function to be set")

    def make(i: int) -> Callable[[Tensor], None]:
        def inner(grad: Tensor) -> None:
            running = engine.current_pass.get()
            with lock:
                buffers.setdefault(running, [None] * len(edges))
                if running not in expected:
                    expected[running] = sum(will_execute(running, edge) for edge in edges)
                counts[running] = counts.get(running, 0) + 1
                buffers[running][i] = grad
                complete = counts[running] == expected[running]
                if complete:
                    found = buffers.pop(running)
                    del counts[running], expected[running]
            if complete:
                fn(found)
        return inner
    return _MultiHandle([t.register_hook(make(i)) for i, t in enumerate(tensors)])


def will_execute(running: engine.Pass, edge: Any) -> bool:
    """Will (or did) this backward pass send a gradient through `edge`?"""
    if type(edge) in tensor_types:
        if running.captures is not None and id(edge) not in running.leaf_targets:
            return False
        running.count_edges(edge)
        return id(edge) in running.counts
    return edge.order in running.reachable() and (
        running.needed is None or edge.order in running.needed)


def _any_hook(tensors: Sequence[Tensor], fn: Callable[..., Any], lock: Any) -> RemovableHandle:
    seen: WeakSet[Any] = WeakSet()      # the passes in which it has been called

    def inner(grad: Tensor) -> None:
        running = engine.current_pass.get()
        with lock:
            first = running not in seen
            seen.add(running)
        if first:
            fn(grad)
    return _MultiHandle([t.register_hook(inner) for t in tensors if t.requires_grad])


def _get_grad_fn_or_grad_acc(tensor: Any) -> Node:
    if isinstance(tensor, GradientEdge):
        return tensor.node
    return tensor.grad_fn if tensor.grad_fn is not None else get_gradient_edge(tensor).node


# ---- mutation of saved tensors -------------------------------------------------------------------


class _CloneOnWrite:
    """Saved tensors, and the copies made of those that were then written to."""

    def __init__(self) -> None:
        self.cloned: WeakKeyDictionary[Any, Tensor] = WeakKeyDictionary()
        self.originals: WeakKeyDictionary[Any, Tensor] = WeakKeyDictionary()
        self.handles: WeakValueDictionary[Any, Any] = WeakValueDictionary()
        self.by_storage: dict[int, set[Any]] = defaultdict(set)

    @property
    def tid_to_weakhandle(self) -> WeakValueDictionary[Any, Any]:
        """What stands for the tensors that are saved now, by what they are known by."""
        return self.handles

    def clear(self) -> None:
        self.cloned.clear()
        self.originals.clear()
        self.handles.clear()
        self.by_storage.clear()


of_class("_AllowMutationOnSavedContext", _CloneOnWrite)


class _Handle:
    """Stands in the graph for a saved tensor."""


_mutating: ContextVar[bool] = ContextVar("allow_mutation_on_saved_tensors", default=False)


@contextmanager
def allow_mutation_on_saved_tensors():
    """Inside, tensors that were saved for backward may be written to: the old values are copied
    when that happens, and backward uses the copy."""
    from flambeau.core import modes
    context = _CloneOnWrite()

    def key_of(tensor: Tensor) -> tuple[Any, ...]:
        array = tensor._array
        return (id(tensor._counter) if tensor._counter is not None else id(array),
                array.__array_interface__["data"][0], tensor._version)

    def pack(tensor: Tensor) -> _Handle:
        counter_of(tensor)
        key = key_of(tensor)
        handle = context.handles.get(key)
        if handle is None:
            handle = _Handle()
            context.handles[key] = handle
            context.originals[handle] = tensor
            context.by_storage[id(tensor._counter)].add(handle)
        return handle

    def unpack(handle: _Handle) -> Tensor:
        found = context.cloned.get(handle)
        if found is not None:
            return found
        if handle not in context.originals:
            raise AssertionError("Trying to backward outside of the "
                                 "'allow_mutation_on_saved_tensors' contextin which the graph was "
                                 "originally recorded.")
        return context.originals[handle]

    class Watch(modes.Level):
        """Copies saved tensors before a write to their memory."""

        def __call__(self, op: Any, args: tuple[Any, ...]) -> Any:
            if op.inplace:
                self.before_write(args[0])
            return op.call(*args)

        def before_write(self, target: Tensor) -> None:
            counter = target._counter
            for handle in list(context.by_storage.get(id(counter), ())):
                original = context.originals.pop(handle, None)
                if original is not None:
                    with no_grad():
                        context.cloned[handle] = original.clone()
            context.by_storage.pop(id(counter), None)

    if _mutating.get():
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    token = _mutating.set(True)
    try:
        with saved_tensors_hooks(pack, unpack), Watch():
            yield context
    finally:
        context.clear()
        _mutating.reset(token)


def set_warn_on_accumulate_grad_stream_mismatch(enabled: bool) -> None:
    """Has no effect: there are no streams on the CPU."""
    _check_bool("enabled", enabled)


def _check_bool(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise RuntimeError(f"{name} must be a bool, but got {type_name(value)}")


def set_override_stale_capture_stream(enabled: bool) -> None:
    """Has no effect: there are no streams on the CPU."""
    _check_bool("enabled", enabled)


def region_activation_memory_budget(budget: float) -> Any:
    """For regions of compiled functions, of which there are none: raises RuntimeError."""
    name = "torch.autograd.graph.region_activation_memory_budget"
    if isinstance(budget, bool) or not isinstance(budget, (int, float)):
        raise TypeError(f"{name}: expects a float, got {type(budget).__name__}")
    if not 0 <= budget <= 1:
        raise ValueError(f"{name}: must be in [0, 1], got {budget}")
    raise RuntimeError(f"{name} can only be used inside a torch.compile region; it has no effect "
                       "in eager mode.")


__getattr__ = lazy_names(__name__, TorchDispatchMode="flambeau.utils._python_dispatch",
                         Variable="flambeau.autograd.variable")


__all__ = ["GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks",
           "get_gradient_edge", "increment_version", "region_activation_memory_budget",
           "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks",
           "set_override_stale_capture_stream", "set_warn_on_accumulate_grad_stream_mismatch"]

adopt(globals(), "core.autograd.saved_hooks")
