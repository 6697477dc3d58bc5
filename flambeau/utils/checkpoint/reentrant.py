"""The variant that records nothing: one node, which runs the function and a backward pass."""
from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau._support.scopes import within
from flambeau.autograd.function import Function
from flambeau.core.autograd import engine
from flambeau.core.modes import grad_mode
from flambeau.utils.checkpoint.recomputation import _PREFIX


def noop_context_fn() -> tuple[Any, Any]:
    """No contexts, neither for the forward pass nor for running again."""
    return contextlib.nullcontext(), contextlib.nullcontext()


class DefaultDeviceType:
    """The device type whose random state is kept where inputs do not say: the CPU."""

    _default = "cpu"

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Use `device` from now on."""
        DefaultDeviceType._default = device

    @staticmethod
    def get_device_type() -> str:
        """The device type in use."""
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
    def backward(ctx: Any, *args: Any) -> Any:
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
        pairs = [(o, g) for o, g in zip(outputs, args)
                 if isinstance(o, Tensor) and o.requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not "
                               "necessary")
        flambeau.autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
        return (None, None, *(x.grad if isinstance(x, Tensor) else None for x in inputs))
