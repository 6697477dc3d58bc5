"""`torch._C._cpu`: what the processor can do."""
from flambeau.cpu._capabilities import _get_cpu_capability, _init_amx

__all__ = ["_get_cpu_capability", "_init_amx"]
