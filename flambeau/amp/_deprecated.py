"""`autocast` and `GradScaler` of a single type of device: the former names."""
from __future__ import annotations

import functools
import warnings
from typing import Any

from flambeau.amp import GradScaler as _GradScaler
from flambeau.amp import autocast as _autocast
from flambeau.amp import autocast_mode


def _warn(device: str, name: str, arguments: str, stacklevel: int = 3) -> None:
    warnings.warn(f"`torch.{device}.amp.{name}(args...)` is deprecated. Please use "
                  f"`torch.amp.{name}({arguments})` instead.", FutureWarning,
                  stacklevel=stacklevel)


def autocast_of(device: str, fast_dtype: Any) -> type:
    """The class `torch.<device>.amp.autocast`."""
    class autocast(_autocast):
        def __init__(self, enabled: bool = True, dtype: Any = fast_dtype,
                     cache_enabled: bool = True):
            _warn(device, "autocast", f"'{device}', args...")
            super().__init__(device, enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)

    autocast.__doc__ = f"The former name of `torch.amp.autocast({device!r}, …)`."
    autocast.__module__ = f"torch.{device}.amp.autocast_mode"
    autocast.__qualname__ = "autocast"
    return autocast


def scaler_of(device: str) -> type:
    """The class `torch.<device>.amp.GradScaler`."""
    class GradScaler(_GradScaler):
        def __init__(self, init_scale: float = 2.0 ** 16, growth_factor: float = 2.0,
                     backoff_factor: float = 0.5, growth_interval: int = 2000,
                     enabled: bool = True):
            _warn(device, "GradScaler", f"'{device}', args...")
            super().__init__(device, init_scale=init_scale, growth_factor=growth_factor,
                             backoff_factor=backoff_factor, growth_interval=growth_interval,
                             enabled=enabled)

    GradScaler.__doc__ = f"The former name of `torch.amp.GradScaler({device!r}, …)`."
    GradScaler.__module__ = f"torch.{device}.amp.grad_scaler"
    GradScaler.__qualname__ = "GradScaler"
    return GradScaler


def custom_fwd(fwd: Any = None, *, cast_inputs: Any = None) -> Any:
    """The former name of `torch.amp.custom_fwd(…, device_type="cuda")`."""
    _warn("cuda", "custom_fwd", "args..., device_type='cuda'")
    return functools.partial(autocast_mode.custom_fwd, device_type="cuda")(
        fwd=fwd, cast_inputs=cast_inputs)


def custom_bwd(bwd: Any) -> Any:
    """The former name of `torch.amp.custom_bwd(…, device_type="cuda")`."""
    _warn("cuda", "custom_bwd", "args..., device_type='cuda'")
    return autocast_mode.custom_bwd(bwd, device_type="cuda")
