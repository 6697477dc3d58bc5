"""Parts and coordinates of a `DeviceMesh` as functions, for graphs that have the mesh as input."""
from __future__ import annotations

from flambeau.core.tensor import Tensor
from flambeau.distributed.device_mesh import DeviceMesh


def _get_submesh_impl(mesh: DeviceMesh, mesh_dims: list[int]) -> DeviceMesh:
    """The part of a mesh along these dimensions."""
    if mesh.mesh_dim_names is None:
        raise ValueError(f"Cannot slice mesh without dim names: {mesh}")
    return mesh[tuple([mesh.mesh_dim_names[dim] for dim in mesh_dims])]


def _get_flattened_submesh_impl(mesh: DeviceMesh, mesh_dims: list[int]) -> DeviceMesh:
    """The part of a mesh along these dimensions, as one dimension."""
    return _get_submesh_impl(mesh, mesh_dims)._flatten()


def _runtime_compute_coordinate_on_dim_impl(full_mesh: Tensor, index: int) -> int:
    """Where along a dimension of a mesh, given with all its copies, this process is."""
    from flambeau.distributed.distributed_c10d import get_rank
    found = DeviceMesh._compute_coordinates_from_mesh(full_mesh, get_rank())
    if found is None:
        raise RuntimeError(f"process {get_rank()} is not in the mesh")
    return found[index]


_get_submesh_fake, _get_flattened_submesh_fake = _get_submesh_impl, _get_flattened_submesh_impl
_runtime_compute_coordinate_on_dim_fake = _runtime_compute_coordinate_on_dim_impl
