"""`torch.mtia`: an accelerator is not available, and these functions say so."""
from __future__ import annotations

from typing import Any

from flambeau._support.absent_devices import module_of, refusal, stream_context
from flambeau._support.streams import Event as Event
from flambeau._support.streams import Stream as Stream

globals().update(module_of(
    "MTIA", "get_rng_state init initial_seed set_rng_state",
    "Torch not compiled with MTIA enabled.",
    false="is_available is_initialized",
    zero="device_count max_memory_allocated memory_allocated",
    nothing="manual_seed manual_seed_all record_memory_history reset_peak_memory_stats seed "
            "seed_all set_rng_state_all set_stream",
    empty_list="get_rng_state_all", empty_dict="memory_stats"))
_NEED = {"current_device": "getCurrentDevice", "current_stream": "getCurrentDevice",
         "default_stream": "getCurrentDevice", "empty_cache": "emptyCache",
         "get_device_capability": "getCurrentDevice", "get_device_properties": "getCurrentDevice",
         "graph_pool_handle": "graphPoolHandle", "set_device": "setCurrentDevice",
         "snapshot": "memorySnapshot", "synchronize": "getCurrentDevice",
         "attach_out_of_memory_observer": "attachOutOfMemoryObserver"}
for _name, _what in _NEED.items():
    globals()[_name] = refusal(_name, RuntimeError,
                               f"Cannot execute {_what}() without MTIA backend.")

StreamContext = stream = stream_context
default_generators: tuple[Any, ...] = ()


def is_bf16_supported() -> bool:
    """True, as PyTorch says of this kind of device."""
    return True


class DeferredMtiaCallError(Exception):
    """An error of a call that waited for the device to start; none is made."""


__all__ = [_name for _name in globals() if not _name.startswith("_") and _name not in (
    "Any", "annotations", "module_of", "refusal", "stream_context")]
