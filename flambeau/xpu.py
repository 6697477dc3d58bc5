"""`torch.xpu`: an Intel GPU is not available, and these functions say so."""
from __future__ import annotations

from typing import Any

from flambeau._support.absent_devices import module_of, refusal, stream_context

globals().update(module_of(
    "XPU",
    "can_device_access_peer current_device current_stream get_device_capability get_device_name "
    "get_device_properties get_per_process_memory_fraction get_rng_state "
    "get_stream_from_external init initial_seed mem_get_info set_device "
    "set_per_process_memory_fraction set_rng_state set_stream synchronize",
    "Torch not compiled with XPU enabled",
    false="is_available is_bf16_supported is_initialized is_tf32_supported",
    zero="device_count max_memory_allocated max_memory_reserved memory_allocated memory_reserved",
    nothing="empty_cache manual_seed manual_seed_all seed seed_all set_rng_state_all "
            "reset_accumulated_memory_stats reset_peak_memory_stats",
    empty_list="get_arch_list get_rng_state_all memory_snapshot",
    empty_dict="memory_stats memory_stats_as_nested_dict"))
for _name in ("clock_rate device_memory_used memory_usage power_draw temperature utilization"
              ).split():
    globals()[_name] = refusal(_name, ImportError, "pyzes is required; install it with 'pip "
                                                   "install pyzes'.")
for _name in "is_current_stream_capturing graph_pool_handle".split():
    globals()[_name] = refusal(_name, RuntimeError,
                               f"Tried to instantiate dummy base class _xpu_{_name}")

StreamContext = stream = stream_context
default_generators: tuple[Any, ...] = ()


def get_gencode_flags() -> str:
    """Empty: there is no XPU device."""
    return ""


class _Unavailable:
    """Something of an XPU device; it can be named, not made."""

    def __init__(self, *args: Any, **kwargs: Any):
        raise RuntimeError(f"Tried to instantiate dummy base class {type(self).__name__}")


for _name in ("Stream", "Event", "XPUGraph", "MemPool", "XPUPluggableAllocator", "graph"):
    globals()[_name] = type(_name, (_Unavailable,), {"__doc__": _Unavailable.__doc__,
                                                     "__module__": "torch.xpu"})


class device:
    """`with device(0)`: AssertionError when it is entered, but for no device (-1 or None)."""

    def __init__(self, device: Any):
        self.idx = -1 if device in (None, -1) else device

    def __enter__(self) -> None:
        if self.idx != -1:
            raise AssertionError("Torch not compiled with XPU enabled")

    def __exit__(self, *exception: Any) -> None:
        return None


class device_of(device):
    """The device of a tensor: of one in main memory none."""

    def __init__(self, obj: Any):
        super().__init__(None)


__all__ = [_name for _name in globals() if not _name.startswith("_") and _name not in (
    "Any", "annotations", "module_of", "refusal", "stream_context")]
