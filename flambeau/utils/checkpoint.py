"""Checkpointing: keep a function's inputs instead of what its backward needs, and run it again.

Without `use_reentrant` (recommended) the forward pass records its graph as usual, but saves, in
place of each tensor, a *holder*; the first holder that backward opens runs the function again,
which fills them all. With `use_reentrant=True` the forward pass records nothing, and its one node
runs the function and a backward pass of its own.
"""
from __future__ import annotations

import contextlib
import inspect
import uuid
import warnings
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau._C import _current_graph_task_id
from flambeau._support.own_methods import adopt, shown_as
from flambeau._support.scopes import Scope, restoring, within
from flambeau.autograd.function import Function
from flambeau.autograd.saved_hooks import SavedTensor, saved_tensors_hooks  # noqa: F401
from flambeau.core import engine
from flambeau.core.modes import grad_mode
from flambeau.utils._python_dispatch import TorchDispatchMode
from flambeau.utils._pytree import tree_map  # noqa: F401
from flambeau.utils._selective_checkpoint import (
    SAC_IGNORED_OPS,
    CheckpointPolicy,
    SelectiveCheckpointContext,
    _CachedTorchDispatchMode,  # noqa: F401
    _CachingTorchDispatchMode,  # noqa: F401
    _VersionWrapper,  # noqa: F401
    create_selective_checkpoint_contexts,
)

_PREFIX = "torch.utils.checkpoint"
_ADVICE = (
    "use_reentrant=False is recommended, but if you need to preserve the current default behavior, "
    "you can pass use_reentrant=True. Refer to docs for more details on the differences between "
    "the two variants.")
_debug: ContextVar[bool | None] = ContextVar("checkpoint_debug", default=None)
_early_stop: ContextVar[bool] = ContextVar("checkpoint_early_stop", default=True)
_group: ContextVar[Any] = ContextVar("checkpoint_group", default=None)


class CheckpointError(RuntimeError):
    """The function did not do the same when it ran again."""


def noop_context_fn() -> tuple[Any, Any]:
    """No contexts, neither for the forward pass nor for running again."""
    return contextlib.nullcontext(), contextlib.nullcontext()


class DefaultDeviceType:
    """The device type whose random state is kept where inputs do not say: the CPU."""

    _default = "cpu"

    @staticmethod
    def set_device_type(device: str = "cpu") -> None:
        DefaultDeviceType._default = device

    @staticmethod
    def get_device_type() -> str:
        return DefaultDeviceType._default


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The random states of the devices of `args`; the CPU's is not among them."""
    return [], []


def set_device_states(devices: Any, states: Any, *, device_type: str | None = None) -> None:
    """Set what `get_device_states` gave: of no device, nothing."""
    for _ in zip(devices, states):
        raise AttributeError("module 'torch.cpu' has no attribute 'device'")


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The inputs outside of their graph, requiring gradients as before."""
    if not isinstance(inputs, tuple):
        raise RuntimeError("Only tuple of tensors is supported. Got Unsupported input type: "
                           f"{type(inputs).__name__}")
    return tuple(x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x
                 for x in inputs)


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn if no input requires a gradient."""
    if not any(isinstance(x, Tensor) and x.requires_grad for x in inputs):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None",
                      stacklevel=3)


class set_checkpoint_early_stop(Scope):
    """Whether running again stops as soon as everything that is needed has been computed: by
    default it does. Goes before the argument of `checkpoint`."""

    @shown_as("set_checkpoint_early_stop")
    def __init__(self, enable: bool):
        self.enable = enable

    _gives: Any = None

    def _changes(self) -> Any:
        return (_early_stop, self.enable),


class set_checkpoint_debug_enabled(Scope):
    """Whether checkpoints log their ops for error messages; None leaves it to their argument."""

    @shown_as("set_checkpoint_debug_enabled")
    def __init__(self, enabled: bool | None):
        self.enabled = enabled

    _gives: Any = None

    def _changes(self) -> Any:
        return (_debug, self.enabled),


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


# ---- random numbers and autocast, as they were ------------------------------------


class _Ambient:
    """The state around a call that matters to what it computes."""

    def __init__(self, preserve_rng: bool):
        self.rng = flambeau.get_rng_state() if preserve_rng else None
        self.autocast = None
        enabled = getattr(flambeau, "is_autocast_enabled", None)
        if enabled is not None:
            self.autocast = {"enabled": enabled("cpu"),
                             "dtype": flambeau.get_autocast_dtype("cpu"),
                             "cache_enabled": flambeau.is_autocast_cache_enabled()}

    @contextlib.contextmanager
    def restored(self) -> Any:
        now = flambeau.get_rng_state() if self.rng is not None else None
        cast = flambeau.autocast("cpu", **self.autocast) if self.autocast is not None \
            else contextlib.nullcontext()
        try:
            if self.rng is not None:
                flambeau.set_rng_state(self.rng)
            with cast:
                yield
        finally:
            if now is not None:
                flambeau.set_rng_state(now)


# ---- reentrant ------------------------------------


def _runs_plain_backward() -> bool:
    """Is the running pass one of `backward()` without `inputs`?"""
    running = engine.current_pass.get()
    return running is None or running.captures is None


class CheckpointFunction(Function):
    """Runs a function without recording it; its backward records and differentiates it."""

    @staticmethod
    def forward(ctx: Any, run_function: Callable[..., Any], preserve_rng_state: bool,
                *args: Any) -> Any:
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.ambient = _Ambient(preserve_rng_state)
        ctx.places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        ctx.inputs = [None if isinstance(a, Tensor) else a for a in args]
        ctx.save_for_backward(*[args[i] for i in ctx.places])
        return within(grad_mode, False, run_function, *args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        if not _runs_plain_backward():
            raise RuntimeError(
                f"When use_reentrant=True, {_PREFIX} is incompatible with .grad() or passing an "
                "`inputs` parameter to .backward(). To resolve this error, you can either set "
                "use_reentrant=False, or call .backward() without passing the `inputs` argument.")
        inputs: Any = list(ctx.inputs)
        for place, tensor in zip(ctx.places, ctx.saved_tensors):
            inputs[place] = tensor
        inputs = detach_variable(tuple(inputs))
        with ctx.ambient.restored(), flambeau.enable_grad():
            outputs = ctx.run_function(*inputs)
        if isinstance(outputs, Tensor):
            outputs = (outputs,)
        pairs = [(o, g) for o, g in zip(outputs, grads)
                 if isinstance(o, Tensor) and o.requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not "
                               "necessary")
        flambeau.autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
        return (None, None, *(x.grad if isinstance(x, Tensor) else None for x in inputs))


# ---- not reentrant ------------------------------------


class _Holder:
    """Stands in the graph for a saved tensor; by pass, the key of its value."""

    def __init__(self) -> None:
        self.handles: dict[Any, Any] = {}


class _Handle:
    """The key of a value that was computed again: it lives until the value was used."""


class _Stop(Exception):
    """Everything that backward needs has been computed."""


class _Frame:
    """One checkpointed call: its holders, in order, and what running again has found."""

    def __init__(self, early_stop: bool, metadata: Any):
        self.early_stop, self.metadata_of = early_stop, metadata
        self.again: Any = None                      # runs the function, given the saved inputs
        self.inputs: Any = None                     # the node that saved the inputs
        self.holders: list[Any] = []                # weak references
        self.metadata: list[Any] = []
        self.values: Any = defaultdict(weakref.WeakKeyDictionary)
        self.counts: dict[Any, int] = defaultdict(int)
        self.done: set[Any] = set()
        self.forward_done = False
        self.ignore_mismatch = False

    def check(self, task: Any) -> None:
        """Was the same saved as in the forward pass?"""
        if self.ignore_mismatch:
            return
        found, expected = self.counts[task], len(self.holders)
        if found != expected:
            raise CheckpointError(
                f"{_PREFIX}: A different number of tensors was saved during the original forward "
                f"and recomputation.\nNumber of tensors saved during forward: {expected}\n"
                f"Number of tensors saved during recomputation: {found}.{_TIP}")
        lines = []
        for i, reference in enumerate(self.holders):
            holder = reference()
            if holder is None or holder.handles.get(task) is None:
                continue
            value = self.values[task].get(holder.handles[task])
            now = self.metadata_of(value)
            if now != self.metadata[i]:
                lines.append(f"tensor at position {i}:\nsaved metadata: {self.metadata[i]}\n"
                             f"recomputed metadata: {now}\n")
        if lines:
            raise CheckpointError(f"{_PREFIX}: Recomputed values for the following tensors have "
                                  "different metadata than during the forward pass.\n"
                                  f"{''.join(lines)}.{_TIP}")


_TIP = """

Tip: `checkpoint(..., debug=True)`, or `with set_checkpoint_debug_enabled(True):`, shows the ops of
both runs.
"""


class _SaveInputs(Function):
    """Saves the inputs of a checkpoint, through whatever hooks are active: an outer checkpoint may
    compute them again too."""

    @staticmethod
    def forward(ctx: Any, dummy: Tensor, *tensors: Tensor) -> Tensor:
        ctx.save_for_backward(*tensors)
        return flambeau.empty(0)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise AssertionError("Did not expect to backward on this graph")


def _hooks_of_forward(frame: _Frame, report: Any) -> saved_tensors_hooks:
    def pack(tensor: Tensor) -> _Holder:
        holder = _Holder()
        frame.holders.append(weakref.ref(holder))
        if frame.metadata_of is not None:
            with flambeau.no_grad():
                frame.metadata.append(frame.metadata_of(tensor))
        return holder

    def unpack(holder: _Holder) -> Tensor:
        task = _group.get() or _current_graph_task_id()
        if task == -1:
            task = uuid.uuid4()                     # outside of backward: compute for this once
        try:
            if task not in frame.done:
                _run_again(frame, task)
            handle = holder.handles.get(task, False)
            if handle is None:
                _used_twice()
            if handle is False or handle not in frame.values[task]:
                raise CheckpointError(f"{_PREFIX}: a saved tensor was not computed again")
            value = frame.values[task][handle]
            holder.handles[task] = None
            return value
        except CheckpointError as error:
            if report is not None:
                report(error)
            raise
    return saved_tensors_hooks(pack, unpack)


def _used_twice() -> None:
    if _group.get() is not None:
        raise CheckpointError(
            f"{_PREFIX} (use_reentrant=False): Performing two backward calls that overlap (i.e. "
            "require the same saved activations in order to compute gradients) is not allowed "
            "while under the torch.utils.checkpoint.GraphExecGroup context.")
    raise CheckpointError(
        f"{_PREFIX}: Unpack is being triggered for a tensor that was already unpacked once. If you "
        "are calling ctx.saved_tensors in backward, make sure to do so only once: the values that "
        "were computed again are freed when they are used.")


def _run_again(frame: _Frame, task: Any) -> None:
    """Fill all holders for one pass."""
    inputs = frame.inputs.saved_tensors

    def pack(tensor: Tensor) -> Tensor:
        value = tensor.detach() if tensor.requires_grad else tensor
        place = frame.counts[task]
        frame.counts[task] += 1
        if place >= len(frame.holders):
            if not frame.forward_done:
                frame.ignore_mismatch = True        # backward inside of the function itself
                return value
            raise CheckpointError(f"{_PREFIX}: trying to save more tensors during recomputation "
                                  f"than during the original forward pass.{_TIP}")
        holder = frame.holders[place]()
        if holder is not None:
            if holder.handles.get(task) is None:
                holder.handles[task] = _Handle()
            frame.values[task][holder.handles[task]] = value
        if frame.early_stop and frame.counts[task] == len(frame.holders):
            raise _Stop
        return value

    def run() -> None:
        with saved_tensors_hooks(pack, lambda value: value), flambeau.enable_grad():
            try:
                frame.again(*inputs)
            except _Stop:
                pass
    restoring(run)
    frame.done.add(task)
    if frame.metadata_of is not None:
        frame.check(task)


def _metadata(tensor: Tensor) -> dict[str, Any]:
    return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}


_METADATA = {"default": _metadata, "none": lambda tensor: None}


class _OpLog:
    """What ran, for error messages."""

    def __init__(self) -> None:
        self.runs: list[list[tuple[str, str]]] = []

    def context(self) -> Any:
        import traceback

        log: list[tuple[str, str]] = []
        self.runs.append(log)

        class Logging(TorchDispatchMode):
            def __torch_dispatch__(self, func: Any, types: Any, args: Any = (),
                                   kwargs: Any = None) -> Any:
                stack = traceback.format_stack()[:-1]
                kept = [s for s in stack if "/flambeau/" not in s.split("\n")[0]]
                result = func(*args, **(kwargs or {}))
                log.append((f"{func} -> {_described(result)}", "".join(kept)))
                return result
        return Logging()

    def report(self, error: CheckpointError) -> None:
        parts = ["An error happened while unpacking tensors; these are the logs of the latest "
                 "computation, because you passed `debug=True` to "
                 "`torch.utils.checkpoint.checkpoint()`.\n"]
        first, last = self.runs[0], self.runs[-1]
        for title, log in (("original forward", first), ("recomputation", last)):
            parts.append(f"\n==== Stack traces of the operators that ran in the {title} ====\n")
            parts += [f"\n{text}   ({i} of {len(log)} in {title.split()[0]})\n{stack}"
                      for i, (text, stack) in enumerate(log, 1)]
        for title, log in (("original forward", first), ("recomputation", last)):
            parts.append(f"\n==== Log of the operators in the {title} ====\n")
            parts += [f"{text}\n" for text, _ in log]
        parts.append(
            "\nYou are seeing this error because you passed `debug=True` to checkpoint and tensors "
            "to be saved during the original forward and recomputation differ between those. The "
            "logs above show where: look for the first op in which they differ, and find in its "
            f"stack trace what makes it run differently.\n\n{error}")
        raise CheckpointError("".join(parts)) from error


def _described(result: Any) -> str:
    if isinstance(result, Tensor):
        return f"{result.dtype}{list(result.shape)}"
    if isinstance(result, (tuple, list)):
        return "(" + ", ".join(map(_described, result)) + ")"
    return repr(result)


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
    steps = list(functions.children() if hasattr(functions, "children") else functions)

    def part(start: int, end: int) -> Callable[[Any], Any]:
        def run(value: Any) -> Any:
            for step in steps[start:end]:
                value = step(value)
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

adopt(globals(), "utils._selective_checkpoint")
