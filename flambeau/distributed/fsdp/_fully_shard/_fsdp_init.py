"""What a mesh is used for."""
from __future__ import annotations

from typing import Any

from flambeau.distributed.fsdp._fully_shard._fsdp_api import DataParallelMeshDims
from flambeau.distributed.fsdp._fully_shard._fsdp_common import (
    DataParallelMeshInfo,
    DDPMeshInfo,
    FSDPMeshInfo,
    HSDPMeshInfo,
)


def _get_mesh_info(mesh: Any,
                   dp_mesh_dims: DataParallelMeshDims | None = None) -> DataParallelMeshInfo:
    """Along which dimensions of a mesh parameters are cut and copied: cut along the only one, or
    copied along the first and cut along the second, unless `dp_mesh_dims` names them."""
    if dp_mesh_dims is None:
        if mesh.ndim not in (1, 2):
            raise ValueError(f"fully_shard expects a 1D or 2D DeviceMesh but got {mesh}"
                             )
        if mesh.ndim == 1:
            return FSDPMeshInfo(mesh, shard_mesh_dim=0)
        if mesh.mesh_dim_names is None:
            raise AssertionError("Please init the 2D mesh for HSDP with mesh_dim_names specified")
        return HSDPMeshInfo(mesh, shard_mesh_dim=1, replicate_mesh_dim=0)
    cut, copied = (_dimension(mesh, names) for names in (dp_mesh_dims.shard_names,
                                                         dp_mesh_dims.replicate_names))
    options: dict[str, Any] = {"dp_mesh_dims": dp_mesh_dims, "spmd_mesh": mesh}
    if cut and copied:
        return HSDPMeshInfo(mesh[copied, cut], shard_mesh_dim=1, replicate_mesh_dim=0, **options)
    if cut:
        return FSDPMeshInfo(mesh[cut], shard_mesh_dim=0, **options)
    return DDPMeshInfo(mesh[copied], replicate_mesh_dim=0, **options)


def _dimension(mesh: Any, names: tuple[str, ...]) -> str | None:
    """One dimension of these names; several become one."""
    if not names:
        return None
    for name in names:
        if name not in (mesh.mesh_dim_names or ()):
            raise ValueError(f"{name!r} is no dimension of the mesh {mesh}")
    if len(names) == 1:
        return names[0]
    raise NotImplementedError(f"fully_shard along several dimensions of a mesh: {names}")
