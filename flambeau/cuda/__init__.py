"""CUDA is not available: these functions say so."""
from __future__ import annotations

from typing import Any

MESSAGE = "flambeau computes on the CPU: there is no CUDA device"


def is_available() -> bool:
    """False: there is no CUDA device."""
    return False


def is_initialized() -> bool:
    """False: there is no CUDA device."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """False: there is no CUDA device."""
    return False


def device_count() -> int:
    """0: there is no CUDA device."""
    return 0


def manual_seed(seed: int) -> None:
    """Has no effect without a device."""


def manual_seed_all(seed: int) -> None:
    """Has no effect without a device."""


def empty_cache() -> None:
    """Has no effect without a device."""


def get_rng_state_all() -> list[Any]:
    """The random states of no devices."""
    return []


def set_rng_state_all(new_states: Any) -> None:
    """Has no effect without a device."""


def _unavailable(*args: Any, **kwargs: Any) -> Any:
    raise RuntimeError(MESSAGE)


init = synchronize = current_device = set_device = get_device_name = _unavailable
get_device_properties = get_device_capability = memory_allocated = _unavailable
max_memory_allocated = reset_peak_memory_stats = current_stream = stream = _unavailable
get_rng_state = set_rng_state = _unavailable


def __getattr__(name: str) -> Any:
    if name == "amp":
        import importlib
        return importlib.import_module("flambeau.cuda.amp")
    raise AttributeError(f"module 'flambeau.cuda' has no attribute {name!r}")


class _Unavailable:
    def __init__(self, *args: Any, **kwargs: Any):
        raise RuntimeError(MESSAGE)


Stream = Event = CUDAGraph = device = _Unavailable

__all__ = ["current_device", "device_count", "empty_cache", "init", "is_available",
           "is_bf16_supported", "is_initialized", "manual_seed", "manual_seed_all", "synchronize"]
