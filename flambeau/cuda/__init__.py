"""CUDA is not available: what asks is told so, what needs a device raises AssertionError, and what
has no effect without one has none."""
from __future__ import annotations

import importlib
from typing import Any

from flambeau._support.deprecation import deprecated as _deprecated
from flambeau._support.devices.absent import answer as _answer
from flambeau._support.devices.absent import answers as _answers
from flambeau._support.devices.absent import module_of as _module_of
from flambeau._support.devices.absent import refusal as _refusal
from flambeau._support.devices.absent import settle as _settle
from flambeau._support.devices.absent import unavailable as _unavailable
from flambeau._support.devices.streams import AcceleratorError as AcceleratorError
from flambeau._support.devices.streams import OutOfMemoryError as OutOfMemoryError
from flambeau._support.lazy.modules import parts as _parts

MESSAGE = "Torch not compiled with CUDA enabled\nflambeau computes on the CPU"
has_half = True
has_magma = False
default_generators: tuple[Any, ...] = ()

globals().update(_module_of(
    "CUDA",
    "init synchronize(device=None) current_device set_device(device) get_device_name(device=None) "
    "get_device_properties(device=None) get_device_capability(device=None) "
    "current_stream(device=None) default_stream(device=None) set_stream(stream) "
    "get_stream_from_external(data_ptr,device=None) get_rng_state(device='cuda') "
    "set_rng_state(new_state,device='cuda') initial_seed cudart check_error(res) "
    "current_blas_handle current_solver_handle ipc_collect mem_get_info(device=None) "
    "memory_summary(device=None,abbreviated=False) can_device_access_peer(device,peer_device) "
    "clock_rate(device=None) device_memory_used(device=None) memory_usage(device=None) "
    "power_draw(device=None) temperature(device=None) utilization(device=None) "
    "list_gpu_processes(device=None) caching_allocator_alloc(size,device=None,stream=None) "
    "caching_allocator_delete(mem_ptr) caching_allocator_disabled "
    "change_current_allocator(allocator) get_allocator_backend get_sync_debug_mode "
    "set_sync_debug_mode(debug_mode) get_per_process_memory_fraction(device=None) "
    "set_per_process_memory_fraction(fraction,device=None) graph_pool_handle "
    "make_graphed_callables(callables,sample_args,num_warmup_iters=3,allow_unused_input=False,"
    "pool=None) use_mem_pool(pool,device=None)",
    MESSAGE,
    false="is_available is_initialized is_bf16_supported(including_emulation=True) "
          "is_tf32_supported is_current_stream_capturing",
    zero="device_count memory_allocated(device=None) max_memory_allocated(device=None) "
         "memory_reserved(device=None) max_memory_reserved(device=None) "
         "memory_cached(device=None) max_memory_cached(device=None)",
    nothing="empty_cache manual_seed(seed) manual_seed_all(seed) seed seed_all "
            "set_rng_state_all(new_states) reset_peak_memory_stats(device=None) "
            "reset_max_memory_allocated(device=None) reset_max_memory_cached(device=None) "
            "reset_accumulated_memory_stats(device=None) reset_accumulated_host_memory_stats "
            "reset_peak_host_memory_stats caching_allocator_enable(value=True)",
    empty_list="get_rng_state_all get_arch_list "
               "memory_snapshot(mempool_id=None,include_traces=True)",
    empty_dict="memory_stats(device=None) memory_stats_as_nested_dict(device=None) "
               "host_memory_stats host_memory_stats_as_nested_dict"))
globals().update({_old: _deprecated(
    f"`torch.cuda.{_old}` has been renamed to `torch.cuda.{_old.replace('cached', 'reserved')}`")(
    globals()[_old]) for _old in ("memory_cached", "max_memory_cached")})
get_gencode_flags = _answer("get_gencode_flags", "", "Empty: there is no CUDA device.")


# What libraries look at that keep and set the state of devices' generators.
_initialized = False
_queued_calls: list[Any] = []
_HAS_PYNVML = False
globals().update(_answers("_is_compiled _is_in_bad_fork _nvml_based_avail", False,
                          "False: there is no CUDA device."))
globals().update(_answers("_check_capability _check_cubins _set_rng_state_offset(offset,device="
                          "'cuda')", None, "Has no effect without a device."))
_maybe_exchange_device = _answer("_maybe_exchange_device(device)", -1, "-1, which is no device.")
_exchange_device = _refusal("_exchange_device(device)", RuntimeError,
                            "PyTorch was compiled without CUDA support")
_get_generator = _refusal("_get_generator(device)", AssertionError, MESSAGE)
_get_rng_state_offset = _refusal("_get_rng_state_offset(device='cuda')", AssertionError, MESSAGE)
_lazy_init = _refusal("_lazy_init", AssertionError, MESSAGE)


def _get_device(device: Any) -> Any:
    """The device of a number, a name or a device."""
    from flambeau.core.devices import device as as_device
    return as_device("cuda", device) if isinstance(device, int) else as_device(device)


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> Any:
    """The number of a device: -1 of the CPU where that is allowed, None where none is given."""
    from flambeau import _utils
    from flambeau.core.devices import device as as_device
    found = as_device(device) if isinstance(device, str) else device
    if isinstance(found, as_device) and found.type not in (("cuda", "cpu") if allow_cpu else
                                                           ("cuda",)):
        raise ValueError(f"Expected a cuda device, but got: {found}")
    return _utils._get_device_index(found, optional, allow_cpu)


def _lazy_call(callable: Any, **kwargs: Any) -> None:
    """Let a call wait until there is a device: there will be none, so it is never made."""


class CudaError(RuntimeError):
    """An error of a CUDA call."""

    def __init__(self, code: int):
        super().__init__(f"CUDA error {code}")


class cudaStatus:
    """What CUDA calls answer."""
    SUCCESS = 0
    ERROR_NOT_READY = 34


class DeferredCudaCallError(Exception):
    """An error of a call that waited for CUDA to start; none is made."""


for _name in (
        "Stream(device=None,priority=0,**kwargs)",
        "ExternalStream(stream_ptr,device=None,**kwargs)",
        "Event(enable_timing=False,blocking=False,interprocess=False,external=False)",
        "CUDAGraph(keep_graph=False)",
        "graph(cuda_graph,pool=None,stream=None,capture_error_mode='global',"
        "enable_annotations=False,check_input_liveness=False)",
        "CUDAPluggableAllocator(path_to_so_file,alloc_fn_name,free_fn_name)",
        "MemPool(allocator=None,use_on_oom=False,no_split=False)",
        "GreenContext()"):
    _class = _unavailable(_name, RuntimeError, f"torch.cuda.{_name.partition('(')[0]} requires "
                          "CUDA support\nflambeau computes on the CPU",
                          "Something of a CUDA device; it can be named, not made.",
                          module="torch.cuda")
    globals()[_class.__name__] = _class


_settle(globals())


class StreamContext:
    """`with stream(s)`: for no stream, nothing."""

    def __init__(self, stream: Any):
        if stream is not None:
            raise AssertionError(MESSAGE)
        self.stream = stream

    def __enter__(self) -> None:
        return None

    def __exit__(self, type: Any, value: Any, traceback: Any) -> None:
        return None


def stream(stream: Any) -> StreamContext:
    """A context in which work is queued in a stream; there is none but `None`."""
    return StreamContext(stream)


class device:
    """`with device(0)`: RuntimeError when it is entered, but for no device (-1 or None)."""

    def __init__(self, device: Any):
        self.idx = -1 if device in (None, -1) else device

    def __enter__(self) -> None:
        if self.idx != -1:
            raise RuntimeError(MESSAGE)

    def __exit__(self, type: Any, value: Any, traceback: Any) -> None:
        return None


class device_of(device):
    """The device of a tensor: of one in main memory none."""

    def __init__(self, obj: Any):
        super().__init__(obj.get_device() if obj.is_cuda else None)


def _tensor_types() -> dict[str, type]:
    """`FloatTensor` and `FloatStorage` and their kind: types of which nothing can be made."""
    def made(name: str, parameters: str = "*args,**kwargs") -> type:
        return _unavailable(f"{name}({parameters})", TypeError, f"type torch.cuda.{name} not "
                           f"available. {MESSAGE}", "A type of CUDA.", module="torch.cuda")

    storage = "*args,wrap_storage=None,dtype=None,device=None,_internal=False"
    kinds = ("Double Float Half BFloat16 Long Int Short Char Byte Bool ComplexDouble "
             "ComplexFloat").split()
    return ({f"{kind}Storage": made(f"{kind}Storage", storage) for kind in kinds} |
            {f"{kind}Tensor": made(f"{kind}Tensor") for kind in kinds[:10]})


globals().update(_tensor_types())


_MODULES = ("amp", "graphs", "memory", "nccl", "nvtx", "profiler", "random", "sparse", "streams")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"flambeau.cuda.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [*_MODULES, *(_name for _name in globals() if not _name.startswith("_") and _name not in (
    "AcceleratorError", "Any", "MESSAGE", "OutOfMemoryError", "annotations", "importlib"))]

_parts(__name__, {
    "graphs": "CUDAGraph graph graph_pool_handle is_current_stream_capturing "
              "make_graphed_callables",
    "green_contexts": "GreenContext",
    "random": "get_rng_state get_rng_state_all initial_seed manual_seed manual_seed_all seed "
              "seed_all set_rng_state set_rng_state_all",
    "streams": "Event ExternalStream Stream"})
