"""Checkpointing: keep a function's inputs instead of what its backward needs, and run it again.

Without `use_reentrant` (recommended) the forward pass records its graph as usual, but saves, in
place of each tensor, a *holder*; the first holder that backward opens runs the function again,
which fills them all. With `use_reentrant=True` the forward pass records nothing, and its one node
runs the function and a backward pass of its own.
"""
from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import flambeau
from flambeau import Tensor, nn
from flambeau._support.own_methods import adopt, shown_as
from flambeau._support.scopes import Scope, restoring
from flambeau.core.autograd.saved_hooks import SavedTensor, saved_tensors_hooks
from flambeau.utils._python_dispatch import TorchDispatchMode
from flambeau.utils._pytree import tree_map
from flambeau.utils.checkpoint.recomputation import (
    _PREFIX,
    CheckpointError,
    _debug,
    _early_stop,
    _Frame,
    _group,
    _hooks_of_forward,
    _metadata,
    _OpLog,
    _SaveInputs,
)
from flambeau.utils.checkpoint.reentrant import (
    CheckpointFunction,
    DefaultDeviceType,
    _Ambient,
    check_backward_validity,
    detach_variable,
    get_device_states,
    noop_context_fn,
    set_device_states,
)
from flambeau.utils.checkpoint.selective import (
    SAC_IGNORED_OPS,
    CheckpointPolicy,
    SelectiveCheckpointContext,
    _CachedTorchDispatchMode,
    _CachingTorchDispatchMode,
    _VersionWrapper,
    create_selective_checkpoint_contexts,
)

_ADVICE = (
    "use_reentrant=False is recommended, but if you need to preserve the current default behavior, "
    "you can pass use_reentrant=True. Refer to docs for more details on the differences between "
    "the two variants.")


class _Setting(Scope):
    """A setting of checkpoints, inside."""

    _gives: Any = None

    def __init__(self, variable: Any, value: Any):
        self._changes = ((variable, value),)


def set_checkpoint_early_stop(enable: bool) -> Any:
    """Whether running again stops as soon as everything that is needed has been computed: by
    default it does. Goes before the argument of `checkpoint`."""
    return _Setting(_early_stop, enable)


def set_checkpoint_debug_enabled(enabled: bool | None) -> Any:
    """Whether checkpoints log their ops for error messages; None leaves it to their argument."""
    return _Setting(_debug, enabled)


class GraphExecGroup(Scope):
    """Inside, several backward passes over disjoint parts of a graph run checkpoints again only
    once, as if they were one pass."""

    __signature__ = inspect.Signature()

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if args or kwargs:
            raise TypeError("GraphExecGroup() takes no arguments")
        return super().__new__(cls)

    def _changes(self) -> Any:
        if _group.get() is not None:
            raise RuntimeError("GraphExecGroup contexts cannot be nested. Already in a group.")
        return (_group, self),


_METADATA = {"default": _metadata, "none": lambda tensor: None}


def _without_reentrance(function: Any, preserve_rng: bool, context_fn: Any, determinism: str,
                        debug: bool, early_stop: bool, args: Any, kwargs: Any) -> Any:
    if determinism not in _METADATA:
        raise ValueError(f"determinism_check should be one of {list(_METADATA)}, but got "
                         f"{determinism}")
    wanted = _debug.get()
    debug = debug if wanted is None else wanted
    log = None
    if debug:
        if context_fn is not noop_context_fn:
            raise ValueError("debug=True is incompatible with non-default context_fn")
        log = _OpLog()
        context_fn = lambda: (log.context(), None)
    forward_context, again_context = context_fn()
    frame = _Frame(early_stop and _early_stop.get(), _METADATA[determinism])
    if not flambeau.is_grad_enabled():
        with forward_context:
            return function(*args, **kwargs)
    places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
    others = [None if isinstance(a, Tensor) else a for a in args]
    keys = [k for k, v in kwargs.items() if isinstance(v, Tensor)]
    fixed = {k: v for k, v in kwargs.items() if k not in keys}
    ambient = _Ambient(preserve_rng)

    def again(*tensors: Tensor) -> None:
        inputs = list(others)
        for place, tensor in zip(places, tensors):
            inputs[place] = tensor
        named = dict(zip(keys, tensors[len(places):]))
        context = log.context() if log is not None else again_context
        with ambient.restored(), context:
            function(*inputs, **fixed, **named)
    frame.again = again
    dummy = flambeau.empty(0, requires_grad=True)
    saver = _SaveInputs.apply(dummy, *[args[i] for i in places], *[kwargs[k] for k in keys])
    frame.inputs = saver.grad_fn

    def run() -> Any:
        with _hooks_of_forward(frame, log.report if log is not None else None), forward_context:
            return function(*args, **kwargs)
    result = restoring(run)
    frame.forward_done = True
    return result


# ---- what users call ------------------------------------


def checkpoint(function: Callable[..., Any], *args: Any, use_reentrant: bool | None = None,
               context_fn: Callable[[], tuple[Any, Any]] = noop_context_fn,
               determinism_check: str = "default", debug: bool = False, early_stop: bool = True,
               **kwargs: Any) -> Any:
    """`function(*args, **kwargs)`, of which backward keeps the arguments only: it runs the function
    again. This trades time for memory.

    `context_fn` gives two contexts, around the first run and around the second;
    `determinism_check="none"` does not compare what the two save; `debug` logs their ops for the
    message if they differ; `early_stop` ends the second run when all that is needed is there;
    `preserve_rng_state=False` lets the second run draw other random numbers.

    >>> import flambeau
    >>> x = flambeau.ones(2, requires_grad=True)
    >>> checkpoint(lambda x: x.exp().sin(), x, use_reentrant=False).sum().backward()
    >>> x.grad
    tensor([-2.4783, -2.4783])
    """
    if use_reentrant is None:
        warnings.warn(
            f"{_PREFIX}: the use_reentrant parameter should be passed explicitly. Starting in "
            "PyTorch 2.9, calling checkpoint without use_reentrant will raise an exception. "
            f"{_ADVICE}", stacklevel=2)
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if not use_reentrant:
        return _without_reentrance(function, preserve, context_fn, determinism_check, debug,
                                   early_stop, args, kwargs)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if context_fn is not noop_context_fn or debug:
        raise ValueError("Passing `context_fn` or `debug` is only supported when "
                         "use_reentrant=False.")
    return CheckpointFunction.apply(function, preserve, *args)


def checkpoint_sequential(functions: Any, segments: int, input: Any,
                          use_reentrant: bool | None = None, **kwargs: Any) -> Any:
    """Run functions (or the children of a Sequential) one after the other, in `segments` parts of
    which all but the last are checkpointed.

    >>> import flambeau
    >>> x = flambeau.ones(2, requires_grad=True)
    >>> checkpoint_sequential([flambeau.exp, flambeau.sin], 2, x, use_reentrant=False).shape
    torch.Size([2])
    """
    if use_reentrant is None:
        warnings.warn(
            f"{_PREFIX}.checkpoint_sequential: the use_reentrant parameter should be passed "
            "explicitly. In version 2.9 we will raise an exception if use_reentrant is not passed. "
            f"{_ADVICE}", stacklevel=2)
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    steps = list(functions.children()) if isinstance(functions, nn.Sequential) else functions

    def part(start: int, end: int) -> Callable[[Any], Any]:
        def run(value: Any) -> Any:
            for i in range(start, end):
                value = steps[i](value)
            return value
        return run
    size, start = len(steps) // segments, 0
    for start in range(0, size * (segments - 1), size):
        input = checkpoint(part(start, start + size), input, use_reentrant=use_reentrant,
                           preserve_rng_state=preserve)
    return part(size * (segments - 1), len(steps))(input)


__all__ = ["SAC_IGNORED_OPS", "CheckpointError", "CheckpointFunction", "CheckpointPolicy",
           "DefaultDeviceType", "GraphExecGroup", "SelectiveCheckpointContext",
           "check_backward_validity", "checkpoint", "checkpoint_sequential",
           "create_selective_checkpoint_contexts", "detach_variable", "get_device_states",
           "noop_context_fn", "set_checkpoint_debug_enabled", "set_checkpoint_early_stop",
           "set_device_states"]

adopt(globals(), "utils.checkpoint.")
