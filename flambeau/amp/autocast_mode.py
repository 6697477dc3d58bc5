"""`autocast`: regions in which ops choose the types that they compute in."""
from __future__ import annotations

import collections.abc
import dataclasses
import functools
import warnings
from contextvars import ContextVar
from typing import Any

import numpy as np

import flambeau
from flambeau import Tensor
from flambeau._support.c_functions import takes_nothing, takes_one
from flambeau._support.scopes import Scope, absent, inside
from flambeau.amp import _policy
from flambeau.core import modes
from flambeau.schema.arguments import bound_by
from flambeau.schema.errors import type_name

_DTYPES = {
    **dict.fromkeys(("cuda", "xpu", "hpu", "mps", "mtia", "maia", "privateuseone"),
                    flambeau.float16),
    **dict.fromkeys(("cpu", "xla", "ipu"), flambeau.bfloat16)}


@dataclasses.dataclass(frozen=True)
class _State:
    """What is switched on, for each type of device."""

    enabled: dict[str, bool] = dataclasses.field(default_factory=dict)
    dtypes: dict[str, flambeau.dtype] = dataclasses.field(default_factory=_DTYPES.copy)
    cache_enabled: bool = True
    nesting: int = 0

    def with_device(self, name: str, enabled: bool, dtype: flambeau.dtype,
                    cache_enabled: bool | None = None, nesting: int | None = None) -> _State:
        return _State({**self.enabled, name: enabled}, {**self.dtypes, name: dtype},
                      self.cache_enabled if cache_enabled is None else cache_enabled,
                      self.nesting if nesting is None else nesting)


_INITIAL = _State()
_state: ContextVar[_State] = ContextVar("autocast_state", default=_INITIAL)
_policy.cache_wanted = lambda: _state.get().cache_enabled


def _device_type(device_type: Any) -> str:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    return flambeau.device(device_type).type


def is_autocast_available(device_type: str) -> bool:
    """Can ops on this type of device be cast? Not those on `meta`.

    >>> is_autocast_available("cpu")
    True
    """
    return _is_autocast_available(device_type)


@bound_by("_is_autocast_available(str device_type) -> bool")
def _is_autocast_available(device_type: str) -> bool:
    return _device_type(device_type) in _state.get().dtypes


@bound_by("get_autocast_dtype(str device_type) -> ScalarType")
def get_autocast_dtype(device_type: str) -> flambeau.dtype:
    """The type that ops of the lower-precision list run in, on this type of device.

    >>> get_autocast_dtype("cpu")
    torch.bfloat16
    """
    return _dtype_on(_device_type(device_type))


def _dtype_on(name: str) -> flambeau.dtype:
    try:
        return _state.get().dtypes[name]
    except KeyError:
        raise RuntimeError("unsupported scalarType") from None


def _check_dtype(dtype: Any) -> None:
    if not isinstance(dtype, flambeau.dtype):
        raise TypeError("set_autocast_dtype(): argument 'dtype' (position 2) must be torch.dtype, "
                        f"not {type_name(dtype)}")


@bound_by("set_autocast_dtype(str device_type, ScalarType dtype) -> ()")
def set_autocast_dtype(device_type: str, dtype: flambeau.dtype) -> None:
    """Set what `get_autocast_dtype` gives."""
    _switch(_state.get().with_device(_device_type(device_type), is_autocast_enabled(device_type),
                                     dtype))


@bound_by("is_autocast_enabled(str device_type) -> bool", "is_autocast_enabled() -> bool")
def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Is autocast on, on this thread, for this type of device?"""
    return _state.get().enabled.get(_device_type(device_type), False)


@bound_by("set_autocast_enabled(str device_type, bool enabled) -> ()",
          "set_autocast_enabled(bool enabled) -> ()")
def set_autocast_enabled(device_type: Any, enabled: bool | None = None) -> None:
    """Switch autocast on or off; with one argument, for `cuda`."""
    if enabled is None:
        device_type, enabled = "cuda", device_type
    name = _device_type(device_type)
    dtype = _state.get().dtypes.get(name, flambeau.float16)
    _switch(_state.get().with_device(name, enabled, dtype))


def _changes_to(state: _State) -> Any:
    """The changes that put a state in force, and hand the policies of the CPU to the path of calls,
    or take them away."""
    before = modes.autocast.get()
    after = _policy.policies(state.dtypes["cpu"]) if state.enabled.get("cpu") else None
    changes: Any = (_state, state), (modes.autocast, after)
    if (before is None) == (after is None):
        return changes
    return *changes, (modes.interceptors, autocast, *(() if before is None else (absent,)))


def _switch(state: _State) -> None:
    _Switched(state)


class _Switched(Scope):
    """A state that is in force for good."""

    _early = True

    def __new__(cls, state: _State) -> Any:
        self = super().__new__(cls)
        self._changes = _changes_to(state)
        return self


@takes_nothing
def is_autocast_cache_enabled() -> bool:
    """Are the casts of parameters kept until the outermost region ends?"""
    return _state.get().cache_enabled


@takes_one
def set_autocast_cache_enabled(enabled: bool) -> None:
    """Set what `is_autocast_cache_enabled` gives."""
    if not isinstance(enabled, bool):
        raise TypeError(f"enabled must be a bool (got {type(enabled).__name__})")
    _switch(dataclasses.replace(_state.get(), cache_enabled=enabled))


@takes_nothing
def clear_autocast_cache() -> None:
    """Forget the casts of parameters."""
    _policy.cached.clear()


@takes_nothing
def autocast_increment_nesting() -> int:
    """Enter one more region; gives their number."""
    _switch(dataclasses.replace(_state.get(), nesting=_state.get().nesting + 1))
    return _state.get().nesting


@takes_nothing
def autocast_decrement_nesting() -> int:
    """Leave a region; gives the number of those left."""
    _switch(dataclasses.replace(_state.get(), nesting=_state.get().nesting - 1))
    return _state.get().nesting


def _deprecated(name: str, device_type: str, function: Any) -> Any:
    kind = "gpu" if device_type == "cuda" else device_type
    verb, _, rest = name.partition("_autocast_")
    old = f"{verb}_autocast_{kind}_{rest}"
    takes = rest if verb == "set" else ""
    instead = f"torch.{name}('{device_type}'{', ' + takes if takes else ''})"

    def call(*args: Any) -> Any:
        for value in args:
            if not isinstance(value, flambeau.dtype if rest == "dtype" else bool):
                kind = "torch.dtype" if rest == "dtype" else "bool"
                raise TypeError(f"{rest} must be a {kind} (got {type(value).__name__})")
        warnings.warn(f"torch.{old}({takes}) is deprecated. Please use {instead} instead.",
                      DeprecationWarning, stacklevel=3)
        return function(device_type, *args)
    call.__name__ = call.__qualname__ = old
    call.__doc__ = f"The former name of `torch.{name}`, for `{device_type}`."
    return takes_one(call) if verb == "set" else takes_nothing(call)


is_autocast_cpu_enabled = _deprecated("is_autocast_enabled", "cpu", is_autocast_enabled)
set_autocast_cpu_enabled = _deprecated("set_autocast_enabled", "cpu", set_autocast_enabled)
get_autocast_cpu_dtype = _deprecated("get_autocast_dtype", "cpu", get_autocast_dtype)
set_autocast_cpu_dtype = _deprecated("set_autocast_dtype", "cpu", set_autocast_dtype)
get_autocast_gpu_dtype = _deprecated("get_autocast_dtype", "cuda", get_autocast_dtype)
set_autocast_gpu_dtype = _deprecated("set_autocast_dtype", "cuda", set_autocast_dtype)
is_autocast_ipu_enabled = _deprecated("is_autocast_enabled", "ipu", is_autocast_enabled)
set_autocast_ipu_enabled = _deprecated("set_autocast_enabled", "ipu", set_autocast_enabled)
get_autocast_ipu_dtype = _deprecated("get_autocast_dtype", "ipu", get_autocast_dtype)
set_autocast_ipu_dtype = _deprecated("set_autocast_dtype", "ipu", set_autocast_dtype)
is_autocast_xla_enabled = _deprecated("is_autocast_enabled", "xla", is_autocast_enabled)
set_autocast_xla_enabled = _deprecated("set_autocast_enabled", "xla", set_autocast_enabled)
get_autocast_xla_dtype = _deprecated("get_autocast_dtype", "xla", get_autocast_dtype)
set_autocast_xla_dtype = _deprecated("set_autocast_dtype", "xla", set_autocast_dtype)


def autocast_decorator(autocast_instance: autocast, func: Any) -> Any:
    """`func`, run inside `autocast_instance`."""
    @functools.wraps(func)
    def decorate_autocast(*args: Any, **kwargs: Any) -> Any:
        return inside(autocast_instance, func, *args, **kwargs)
    vars(decorate_autocast)["__script_unsupported"] = (
        "@autocast() decorator is not supported in script mode")
    return decorate_autocast


class autocast(Scope):
    """A region, or a decorated function, in which ops choose the types that they compute in.

    Products and convolutions run in `dtype` (bfloat16, or float16), losses, FFTs and
    factorisations in float32, and joining tensors of several types gives the widest; all other
    ops take what they get. Regions nest, also disabled ones. float64 is left alone, as are
    in-place calls and calls with `out=`. Backward passes belong outside.

    With `cache_enabled` a parameter is cast once, until the outermost region ends.

    >>> a, b = flambeau.ones(2, 2), flambeau.ones(2, 2)
    >>> with autocast("cpu"):
    ...     c = a @ b
    ...     with autocast("cpu", enabled=False):
    ...         d = a @ b
    >>> c.dtype, d.dtype
    (torch.bfloat16, torch.float32)

    Micikevicius et al., "Mixed Precision Training", 2018, https://arxiv.org/abs/1710.03740.
    """

    def __init__(self, device_type: str, dtype: flambeau.dtype | None = None, enabled: bool = True,
                 cache_enabled: bool | None = None):
        self.device = _device_type(device_type)
        self.fast_dtype = _dtype_on(self.device) if dtype is None else dtype
        self.custom_backend_name = "privateuseone"
        self._cache_enabled = (is_autocast_cache_enabled() if cache_enabled is None
                               else cache_enabled)
        if self.device == "cuda":
            if enabled:
                warnings.warn("CUDA is not available or torch_xla is imported. "
                              "Disabling autocast.", stacklevel=2)
            enabled = False
        elif self.device == "cpu" and enabled and self.fast_dtype not in (flambeau.bfloat16,
                                                                          flambeau.float16):
            warnings.warn("In CPU autocast, but the target dtype is not supported. Disabling "
                          "autocast.\nCPU Autocast only supports dtypes of torch.bfloat16, "
                          "torch.float16 currently.", stacklevel=2)
            enabled = False
        self._enabled = enabled

    def _changes(self) -> Any:
        if not isinstance(self._enabled, bool):
            raise TypeError("set_autocast_enabled(): argument 'enabled' (position 2) must be bool, "
                            f"not {type_name(self._enabled)}")
        _check_dtype(self.fast_dtype)
        if not isinstance(self._cache_enabled, bool):
            raise TypeError(f"enabled must be a bool (got {type_name(self._cache_enabled)})")
        before = _state.get()
        return _changes_to(before.with_device(self.device, self._enabled, self.fast_dtype,
                                              self._cache_enabled, before.nesting + 1))

    def _has_left(self) -> None:
        if _state.get().nesting == 0:
            clear_autocast_cache()

    def __call__(self, func: Any) -> Any:
        return autocast_decorator(self, func)


# ---- Functions with an opinion on types ---------------------------------------------------------

def _cast(value: Any, device_type: str, dtype: flambeau.dtype) -> Any:
    if isinstance(value, Tensor):
        wanted = (value.is_floating_point() and value.device.type == device_type
                  and value.dtype is not flambeau.float64)
        return value.to(dtype) if wanted else value
    if isinstance(value, (str, bytes, np.ndarray)):
        return value
    if isinstance(value, collections.abc.Mapping):
        return {_cast(k, device_type, dtype): _cast(v, device_type, dtype)
                for k, v in value.items()}
    if isinstance(value, collections.abc.Iterable):
        cast = (_cast(v, device_type, dtype) for v in value)
        return type(value)(cast) if isinstance(value, (list, tuple)) else cast
    return value


def custom_fwd(fwd: Any = None, *, device_type: str, cast_inputs: flambeau.dtype | None = None
               ) -> Any:
    """Decorates the `forward(ctx, …)` of a `torch.autograd.Function` for use under autocast.

    With `cast_inputs`, floating-point tensors on `device_type` arrive as that type, and autocast
    is off inside. Without it, `forward` runs in the state that it meets, and `custom_bwd` brings
    `backward` into the same.

    >>> class Square(flambeau.autograd.Function):
    ...     @staticmethod
    ...     @custom_fwd(device_type="cpu", cast_inputs=flambeau.float32)
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...     @staticmethod
    ...     @custom_bwd(device_type="cpu")
    ...     def backward(ctx, grad):
    ...         return 2 * grad * ctx.saved_tensors[0]
    >>> with autocast("cpu"):
    ...     Square.apply(flambeau.ones(2, dtype=flambeau.bfloat16)).dtype
    torch.float32
    """
    _device_type(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorate_fwd(*args: Any, **kwargs: Any) -> Any:
        ctx = args[0]
        ctx._dtype = get_autocast_dtype(device_type)
        enabled = is_autocast_enabled(device_type)
        if cast_inputs is None:
            ctx._fwd_used_autocast = enabled
            return fwd(*args, **kwargs)
        ctx._fwd_used_autocast = False
        if not enabled:
            return fwd(*args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(*_cast(args, device_type, cast_inputs),
                       **_cast(kwargs, device_type, cast_inputs))
    return decorate_fwd


def custom_bwd(bwd: Any = None, *, device_type: str) -> Any:
    """Decorates the `backward(ctx, …)` that belongs to a `forward` with `custom_fwd`."""
    _device_type(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorate_bwd(*args: Any, **kwargs: Any) -> Any:
        region = autocast(device_type, enabled=args[0]._fwd_used_autocast, dtype=args[0]._dtype)
        return inside(region, bwd, *args, **kwargs)
    return decorate_bwd


__all__ = ["autocast", "autocast_decorator", "custom_bwd", "custom_fwd", "is_autocast_available"]
