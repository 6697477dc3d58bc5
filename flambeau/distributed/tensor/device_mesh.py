"""`DeviceMesh` under the name that it has among distributed tensors."""
from flambeau.distributed.device_mesh import DeviceMesh, init_device_mesh

__all__ = ["DeviceMesh", "init_device_mesh"]
