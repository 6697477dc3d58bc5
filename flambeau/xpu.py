"""`torch.xpu`: an Intel GPU is not available, and these functions say so."""
from __future__ import annotations

from typing import Any

from flambeau._support.devices.absent import (
    module_of,
    refusal,
    refusals,
    settle,
    stream_context,
    unavailable,
)
from flambeau._support.lazy.modules import parts

globals().update(module_of(
    "XPU",
    "can_device_access_peer(device,peer) change_current_allocator(allocator) "
    "use_mem_pool(pool,device=None) make_graphed_callables(callables,sample_args,"
    "num_warmup_iters=3,allow_unused_input=False,pool=None) current_device "
    "current_stream(device=None) get_device_capability(device=None) get_device_name(device=None) "
    "get_device_properties(device=None) get_per_process_memory_fraction(device=None) "
    "get_rng_state(device='xpu') get_stream_from_external(data_ptr,device=None) init initial_seed "
    "mem_get_info(device=None) set_device(device) "
    "set_per_process_memory_fraction(fraction,device=None) set_rng_state(new_state,device='xpu') "
    "set_stream(stream) synchronize(device=None)",
    "Torch not compiled with XPU enabled",
    false="is_available is_bf16_supported(including_emulation=True) is_initialized "
          "is_tf32_supported",
    zero="device_count max_memory_allocated(device=None) max_memory_reserved(device=None) "
         "memory_allocated(device=None) memory_reserved(device=None)",
    nothing="empty_cache manual_seed(seed) manual_seed_all(seed) seed seed_all "
            "set_rng_state_all(new_states) reset_accumulated_memory_stats(device=None) "
            "reset_peak_memory_stats(device=None)",
    empty_list="get_arch_list get_rng_state_all memory_snapshot(mempool_id=None)",
    empty_dict="memory_stats(device=None) memory_stats_as_nested_dict(device=None)"))
globals().update(refusals(
    "clock_rate(device=None) device_memory_used(device=None) memory_usage(device=None) "
    "power_draw(device=None) temperature(device=None) utilization(device=None)",
    ImportError, "pyzes is required; install it with 'pip install pyzes'."))
_DUMMY = "Tried to instantiate dummy base class "
for _name in "is_current_stream_capturing graph_pool_handle".split():
    globals()[_name] = refusal(_name, RuntimeError, f"{_DUMMY}_xpu_{_name}")

StreamContext = stream_context
default_generators: tuple[Any, ...] = ()


def get_gencode_flags() -> str:
    """Empty: there is no XPU device."""
    return ""


def stream(stream: Any) -> stream_context:
    """A context in which work is queued in a stream; there is none but `None`."""
    return stream_context(stream)


for _name in ("Stream(device=None,priority=0,**kwargs)", "Event(enable_timing=False)",
              "XPUGraph(keep_graph=False)", "MemPool(allocator=None,use_on_oom=False)",
              "XPUPluggableAllocator(path_to_lib_file,alloc_fn_name,free_fn_name)",
              "graph(xpu_graph,pool=None,stream=None)"):
    _class = unavailable(_name, RuntimeError, _DUMMY + _name.partition("(")[0],
                         "Something of an XPU device; it can be named, not made.",
                         module="torch.xpu")
    globals()[_class.__name__] = _class


class device:
    """`with device(0)`: AssertionError when it is entered, but for no device (-1 or None)."""

    def __init__(self, device: Any):
        self.idx = -1 if device in (None, -1) else device

    def __enter__(self) -> None:
        if self.idx != -1:
            raise AssertionError("Torch not compiled with XPU enabled")

    def __exit__(self, type: Any, value: Any, traceback: Any) -> None:
        return None


class device_of(device):
    """The device of a tensor: of one in main memory none."""

    def __init__(self, obj: Any):
        super().__init__(None)


settle(globals())
__all__ = [_name for _name in globals() if not _name.startswith("_") and _name not in (
    "Any", "annotations", "module_of", "parts", "refusal", "refusals", "settle", "stream_context",
    "unavailable")] + ["streams"]  # noqa: F822

parts(__name__, {
    "random":
        "get_rng_state get_rng_state_all set_rng_state set_rng_state_all manual_seed "
        "manual_seed_all seed seed_all initial_seed",
    "streams": "Stream Event",
    "memory":
        "MemPool XPUPluggableAllocator change_current_allocator empty_cache "
        "get_per_process_memory_fraction max_memory_allocated max_memory_reserved "
        "mem_get_info memory_allocated memory_reserved memory_snapshot memory_stats "
        "memory_stats_as_nested_dict reset_accumulated_memory_stats "
        "reset_peak_memory_stats set_per_process_memory_fraction use_mem_pool",
    "graphs":
        "is_current_stream_capturing graph_pool_handle XPUGraph graph "
        "make_graphed_callables"})
