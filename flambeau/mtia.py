"""`torch.mtia`: an accelerator is not available, and these functions say so."""
from __future__ import annotations

from typing import Any

from flambeau._support.devices.absent import (
    module_of,
    refusals,
    settle,
    stream_context,
    unavailable,
)
from flambeau._support.devices.streams import Event as Event
from flambeau._support.devices.streams import Stream as Stream
from flambeau._support.lazy.modules import parts

globals().update(module_of(
    "MTIA",
    "get_rng_state(device='mtia') init initial_seed set_rng_state(new_state,device='mtia')",
    "Torch not compiled with MTIA enabled.",
    false="is_available is_initialized",
    zero="device_count max_memory_allocated(device=None) memory_allocated(device=None)",
    nothing="manual_seed(seed) manual_seed_all(seed) "
            "record_memory_history(enabled='all',stacks='python',max_entries=0) "
            "reset_peak_memory_stats(device=None) seed seed_all set_rng_state_all(new_states) "
            "set_stream(stream)",
    empty_list="get_rng_state_all",
    empty_dict="memory_stats(device=None)"))
_NEED = {"current_device": "getCurrentDevice", "current_stream(device=None)": "getCurrentDevice",
         "default_stream(device=None)": "getCurrentDevice", "empty_cache": "emptyCache",
         "get_device_capability(device=None)": "getCurrentDevice",
         "get_device_properties(device=None)": "getCurrentDevice",
         "graph_pool_handle": "graphPoolHandle", "set_device(device)": "setCurrentDevice",
         "snapshot": "memorySnapshot", "synchronize(device=None)": "getCurrentDevice",
         "attach_out_of_memory_observer(observer)": "attachOutOfMemoryObserver"}
for _heading, _what in _NEED.items():
    globals().update(refusals(_heading, RuntimeError,
                              f"Cannot execute {_what}() without MTIA backend."))

MTIAGraph = unavailable(
    "MTIAGraph(keep_graph=False)", RuntimeError,
    "Cannot execute mtiagraphCreate() without MTIA backend.", "A recorded graph of calls.",
    module="torch.mtia")
graph = unavailable(
    "graph(mtia_graph,pool=None,stream=None)", RuntimeError,
    "Cannot execute getCurrentDevice() without MTIA backend.", "A context that records a graph.",
    module="torch.mtia")


class device:
    """`with device(0)`: RuntimeError when it is entered."""

    def __init__(self, device: Any):
        self.idx = device

    def __enter__(self) -> None:
        raise RuntimeError("Cannot execute maybeExchangeDevice() without MTIA backend.")

    def __exit__(self, type: Any, value: Any, traceback: Any) -> None:
        return None


StreamContext = stream_context
default_generators: tuple[Any, ...] = ()


def stream(stream: Any) -> stream_context:
    """A context in which work is queued in a stream; there is none but `None`."""
    return stream_context(stream)


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """True, as PyTorch says of this kind of device."""
    return True


class DeferredMtiaCallError(Exception):
    """An error of a call that waited for the device to start; none is made."""


settle(globals())
__all__ = [_name for _name in globals() if not _name.startswith("_") and _name not in (
    "Any", "DeferredMtiaCallError", "Event", "Stream", "StreamContext", "annotations",
    "default_generators", "module_of", "parts", "refusals", "settle", "stream_context",
    "unavailable")]

parts(__name__, {
    "memory": "memory_stats max_memory_allocated memory_allocated reset_peak_memory_stats",
    "mtia_graph": "MTIAGraph graph graph_pool_handle"})
