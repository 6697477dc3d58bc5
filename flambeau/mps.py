"""`torch.mps`: Apple's GPU is not available, and these functions say so."""
from __future__ import annotations

from flambeau._support.devices.absent import answer, refusals, settle, unavailable

_NEED = {"current_allocated_memory": "getCurrentAllocatedMemory",
         "driver_allocated_memory": "getDriverAllocatedMemory", "empty_cache": "emptyCache",
         "get_rng_state(device='mps')": "getDefaultGenerator", "seed": "getDefaultGenerator",
         "set_rng_state(new_state,device='mps')": "getDefaultGenerator",
         "synchronize": "deviceSynchronize", "recommended_max_memory": "getRecommendedMaxMemory",
         "set_per_process_memory_fraction(fraction)": "setMemoryFraction",
         "compile_shader(source)": "compileShader", "load_metallib(source)": "loadMetallib"}
for _heading, _what in _NEED.items():
    globals().update(refusals(_heading, RuntimeError,
                              f"Cannot execute {_what}() without MPS backend."))

Event = unavailable("Event(enable_timing=False)", RuntimeError,
                    "Cannot execute acquireEvent() without MPS backend.", "A moment in a queue.",
                    module="torch.mps.event")
is_available = answer("is_available", False, "False: flambeau computes on the CPU.")
device_count = answer("device_count", 0, "0: flambeau computes on the CPU.")
manual_seed = answer("manual_seed(seed)", None, "Has no effect without a device.")

settle(globals())
__all__ = [*(h.partition("(")[0] for h in _NEED), "Event", "device_count", "is_available",
           "manual_seed"]
