"""CUDA is not available: what asks is told so, what needs a device raises AssertionError, and what
has no effect without one has none."""
from __future__ import annotations

import importlib
from collections import OrderedDict
from typing import Any

from flambeau._support.absent_devices import answer as _answer
from flambeau._support.absent_devices import refusal as _refusal

MESSAGE = "Torch not compiled with CUDA enabled: flambeau computes on the CPU"
has_half = True
has_magma = False
default_generators: tuple[Any, ...] = ()


for _name in ("is_available", "is_initialized", "is_bf16_supported", "is_tf32_supported",
              "is_current_stream_capturing"):
    globals()[_name] = _answer(_name, False, "False: there is no CUDA device.")
for _name in ("device_count", "memory_allocated", "max_memory_allocated", "memory_reserved",
              "max_memory_reserved", "memory_cached", "max_memory_cached"):
    globals()[_name] = _answer(_name, 0, "0: there is no CUDA device.")
for _name in ("empty_cache", "manual_seed", "manual_seed_all", "seed", "seed_all",
              "set_rng_state_all", "reset_peak_memory_stats", "reset_max_memory_allocated",
              "reset_max_memory_cached", "reset_accumulated_memory_stats",
              "reset_accumulated_host_memory_stats", "reset_peak_host_memory_stats",
              "caching_allocator_enable"):
    globals()[_name] = _answer(_name, None, "Has no effect without a device.")
for _name, _empty in (("get_rng_state_all", list), ("get_arch_list", list),
                      ("get_gencode_flags", str), ("memory_stats", OrderedDict),
                      ("memory_stats_as_nested_dict", dict), ("host_memory_stats", OrderedDict),
                      ("host_memory_stats_as_nested_dict", dict), ("memory_snapshot", list)):
    globals()[_name] = _answer(_name, _empty, "Empty: there is no CUDA device.")


for _name in ("init", "synchronize", "current_device", "set_device", "get_device_name",
              "get_device_properties", "get_device_capability", "current_stream", "default_stream",
              "set_stream", "get_stream_from_external", "get_rng_state", "set_rng_state",
              "initial_seed", "cudart", "check_error", "current_blas_handle",
              "current_solver_handle", "ipc_collect", "mem_get_info", "memory_summary",
              "can_device_access_peer", "clock_rate", "device_memory_used", "memory_usage",
              "power_draw", "temperature", "utilization", "list_gpu_processes",
              "caching_allocator_alloc", "caching_allocator_delete", "caching_allocator_disabled",
              "change_current_allocator", "get_allocator_backend", "get_sync_debug_mode",
              "set_sync_debug_mode", "get_per_process_memory_fraction",
              "set_per_process_memory_fraction", "graph_pool_handle", "make_graphed_callables",
              "use_mem_pool"):
    globals()[_name] = _refusal(_name, AssertionError, MESSAGE)


_lazy_init = _refusal("_lazy_init", AssertionError, MESSAGE)


def _lazy_call(callable: Any, **kwargs: Any) -> None:
    """Let a call wait until there is a device: there will be none, so it is never made."""


class CudaError(RuntimeError):
    """An error of a CUDA call; none is made."""


class cudaStatus:
    """What CUDA calls answer."""
    SUCCESS = 0
    ERROR_NOT_READY = 34


class DeferredCudaCallError(Exception):
    """An error of a call that waited for CUDA to start; none is made."""


class _Unavailable:
    """Something of a CUDA device; it can be named, not made."""

    def __init__(self, *args: Any, **kwargs: Any):
        raise RuntimeError(f"torch.cuda.{type(self).__name__} requires CUDA support: "
                           "flambeau computes on the CPU")


for _name in ("Stream", "ExternalStream", "Event", "CUDAGraph", "graph", "CUDAPluggableAllocator",
              "MemPool", "GreenContext"):
    globals()[_name] = type(_name, (_Unavailable,), {"__doc__": _Unavailable.__doc__})


class StreamContext:
    """`with stream(s)`: for no stream, nothing."""

    def __init__(self, stream: Any):
        if stream is not None:
            raise AssertionError(MESSAGE)
        self.stream = stream

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exception: Any) -> None:
        return None


stream = StreamContext


class device:
    """`with device(0)`: RuntimeError when it is entered, but for no device (-1 or None)."""

    def __init__(self, device: Any):
        self.idx = -1 if device in (None, -1) else device

    def __enter__(self) -> None:
        if self.idx != -1:
            raise RuntimeError(MESSAGE)

    def __exit__(self, *exception: Any) -> None:
        return None


class device_of(device):
    """The device of a tensor: of one in main memory none."""

    def __init__(self, obj: Any):
        super().__init__(obj.get_device() if obj.is_cuda else None)


def _tensor_types() -> dict[str, type]:
    """`FloatTensor` and `FloatStorage` and their kind: types of which nothing can be made."""
    def refuse(cls: type, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"type torch.cuda.{cls.__name__} not available. {MESSAGE}")

    kinds = ("Double Float Half BFloat16 Long Int Short Char Byte Bool ComplexDouble "
             "ComplexFloat").split()
    names = [f"{kind}Storage" for kind in kinds] + [f"{kind}Tensor" for kind in kinds[:10]]
    return {name: type(name, (), {"__new__": refuse, "__module__": "torch.cuda"})
            for name in names}


globals().update(_tensor_types())


def __getattr__(name: str) -> Any:
    if name in ("amp", "graphs", "memory", "nccl", "nvtx", "profiler", "random", "sparse",
                "streams"):
        return importlib.import_module(f"flambeau.cuda.{name}")
    raise AttributeError(f"module 'flambeau.cuda' has no attribute {name!r}")


__all__ = [_name for _name in globals() if not _name.startswith("_") and _name not in (
    "Any", "MESSAGE", "OrderedDict", "annotations", "importlib")]
