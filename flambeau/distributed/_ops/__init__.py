"""Ops that compiled functions call on meshes of processes."""
from flambeau.distributed._ops import device_mesh

__all__ = ["device_mesh"]
