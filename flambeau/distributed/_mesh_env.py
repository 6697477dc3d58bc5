"""Around device meshes: those that are active, the devices there are, checks of their parts."""
from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import flambeau
from flambeau.distributed import distributed_c10d as c10d

if TYPE_CHECKING:
    from flambeau.distributed.device_mesh import DeviceMesh

Override = tuple[Any, Any]              # the backend of a dimension's groups, and its options
_NO_OVERRIDE: Override = (None, None)


def _normalize_backend_override(backend_override: dict[Any, Any], ndim: int,
                                mesh_dim_names: tuple[str, ...] | None = None
                                ) -> Iterator[Override]:
    """The override of each dimension, of those that numbers and names say."""
    left = dict(backend_override)
    names = mesh_dim_names or (None,) * ndim
    found: list[Override] = []
    for i in range(ndim):
        given: Any = _NO_OVERRIDE
        if names[i] in left:
            if i in left:
                raise RuntimeError(f"Found redundant dim index {i} and name {names[i]} in "
                                   "backend_override")
            given = left.pop(names[i])
        elif i in left:
            given = left.pop(i)
        found.append((given, None) if isinstance(given, str) else
                     given if isinstance(given, tuple) else (None, given))
    if left:
        raise RuntimeError(f"Found invalid keys in backend_override: got {list(left)}, expected "
                           f"integers in range [0, {ndim}) or one of {mesh_dim_names}")
    return iter(found)


def _check_names(names: tuple[str, ...] | None, shape: Sequence[int]) -> None:
    if names is None:
        return
    if len(set(names)) != len(names):
        raise RuntimeError("Each mesh_dim_name must be unique. Found repeated mesh_dim_name in "
                           f"mesh_dim_names {names}")
    if len(names) != len(shape):
        raise RuntimeError("mesh_shape and mesh_dim_names should have same length! Found "
                           f"len(mesh_dim_names): {len(names)} and len(mesh_shape):{len(shape)}.")


class _MeshEnv(threading.local):
    """The meshes that are active in this thread."""

    def __init__(self) -> None:
        self.mesh_stack: list[DeviceMesh] = []

    def get_current_mesh(self) -> DeviceMesh:
        """The mesh of the innermost `with mesh:`."""
        if not self.mesh_stack:
            raise RuntimeError("No device mesh is currently active!")
        return self.mesh_stack[-1]

    def get_root_mesh(self, device_mesh: DeviceMesh) -> DeviceMesh:
        """The mesh that a mesh is a part of."""
        return device_mesh._get_root_mesh()

    @staticmethod
    def num_devices_per_host(device_type: str) -> int:
        """How many devices of a type this machine has; processes on the CPU count as one each."""
        handle = _get_device_handle(device_type)
        return handle.device_count() if hasattr(handle, "device_count") else 1

    @staticmethod
    def num_hosts(device_type: str) -> int:
        """How many machines the devices of all processes take."""
        return c10d.get_world_size() // _MeshEnv.num_devices_per_host(device_type)

    def _get_all_submeshes(self, device_mesh: DeviceMesh, mesh_dim_name: str) -> list[DeviceMesh]:
        return device_mesh._get_all_submeshes(mesh_dim_name)


def _get_device_handle(device_type: str = "cuda") -> Any:
    """The module of a type of device, if there is one."""
    return getattr(flambeau, device_type, None)
