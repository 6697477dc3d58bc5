"""`torch.mps`: Apple's GPU is not available, and these functions say so."""
from __future__ import annotations

from flambeau._support.absent_devices import answer, refusal

_NEED = {"current_allocated_memory": "getCurrentAllocatedMemory",
         "driver_allocated_memory": "getDriverAllocatedMemory", "empty_cache": "emptyCache",
         "get_rng_state": "getDefaultGenerator", "seed": "getDefaultGenerator",
         "set_rng_state": "getDefaultGenerator", "synchronize": "deviceSynchronize",
         "recommended_max_memory": "getRecommendedMaxMemory",
         "set_per_process_memory_fraction": "setMemoryFraction",
         "compile_shader": "compileShader", "load_metallib": "loadMetallib"}
for _name, _what in _NEED.items():
    globals()[_name] = refusal(_name, RuntimeError,
                               f"Cannot execute {_what}() without MPS backend.")

is_available = answer("is_available", False, "False: flambeau computes on the CPU.")
device_count = answer("device_count", 0, "0: flambeau computes on the CPU.")
manual_seed = answer("manual_seed", None, "Has no effect without a device.")

__all__ = [*_NEED, "device_count", "is_available", "manual_seed"]
