"""The older name of `flambeau.distributed.tensor`."""
from __future__ import annotations

from flambeau._support.lazy.modules import lazy_modules
from flambeau.distributed.device_mesh import DeviceMesh, init_device_mesh
from flambeau.distributed.tensor import *

__all__ = ["DTensor", "Partial", "Placement", "Replicate", "Shard", "distribute_module",
           "distribute_tensor"]
__getattr__ = lazy_modules("flambeau.distributed._tensor", "api", "device_mesh", "experimental",
                           "placement_types")
