"""Collectives on the processes along one dimension of a mesh, and what they cost."""
from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import flambeau
from flambeau.core.tensor import Tensor
from flambeau.distributed import _functional_collectives as funcol
from flambeau.distributed import distributed_c10d as c10d
from flambeau.distributed._c10d.world import resolve_name
from flambeau.library import Library


def mesh_scatter(output: Tensor, scatter_list: list[Tensor], mesh: Any, mesh_dim: int = 0,
                 async_op: bool = False, *, group_src: int = 0) -> Any:
    """Give each process along a dimension its entry of the list of process `group_src` there."""
    if output.is_meta:
        return None
    group = mesh.get_group(mesh_dim)
    mine = group.rank() == group_src
    return c10d.scatter(output, scatter_list if mine else None, group=group, async_op=async_op,
                        group_src=group_src)


def mesh_broadcast(tensor: Tensor, mesh: Any, mesh_dim: int = 0, async_op: bool = False, *,
                   group_src: int = 0) -> Any:
    """Give all processes along a dimension the tensor of process `group_src` there."""
    if tensor.is_meta:
        return None
    return c10d.broadcast(tensor, group=mesh.get_group(mesh_dim), async_op=async_op,
                          group_src=group_src)


def shard_dim_alltoall(input: Tensor, gather_dim: int, shard_dim: int, mesh: Any, mesh_dim: int
                       ) -> Tensor:
    """Pieces along `gather_dim` become pieces along `shard_dim`; both divide evenly."""
    return _shard_dim_alltoall(input, gather_dim, shard_dim, mesh.get_group(mesh_dim).group_name)


def _shard_dim_alltoall(input: Tensor, gather_dim: int, shard_dim: int, group_name: Any) -> Tensor:
    sent = flambeau.stack(input.chunk(resolve_name(group_name).size(), shard_dim))
    found = funcol.all_to_all_single(sent, None, None, group_name)
    return flambeau.cat(list(found), gather_dim)


def _resharded(input: Tensor, gather_dim: int, shard_dim: int, group_name: Any) -> Tensor:
    """The size of what `shard_dim_alltoall` gives."""
    count, shape = resolve_name(group_name).size(), list(input.shape)
    shape[gather_dim] *= count
    shape[shard_dim] //= count
    return input.new_empty(shape)


_library = Library("_dtensor", "FRAGMENT")
_library.define("shard_dim_alltoall(Tensor input, int gather_dim, int shard_dim, Any group_name) "
                "-> Tensor")
_library.impl("shard_dim_alltoall", _shard_dim_alltoall, "CompositeExplicitAutograd")
_library._register_fake("shard_dim_alltoall", _resharded)


def pad_tensor(tensor: Tensor, pad_dim: int, pad_size: int) -> Tensor:
    """The tensor, longer along a dimension, by zeros."""
    if pad_size == 0:
        return tensor
    shape = list(tensor.shape)
    shape[pad_dim] = pad_size
    return flambeau.cat([tensor, tensor.new_zeros(shape)], pad_dim)


def unpad_tensor(tensor: Tensor, pad_dim: int, pad_size: int) -> Tensor:
    """The tensor without the end of a dimension."""
    if pad_size == 0:
        return tensor
    return tensor.narrow(pad_dim, 0, tensor.shape[pad_dim] - pad_size)


def fill_empty_tensor_to_shards(shards: list[Tensor], shard_dim: int, num_empty_tensors: int
                                ) -> list[Tensor]:
    """The pieces, and as many empty ones after them."""
    if num_empty_tensors == 0:
        return shards
    shape = list(shards[0].shape)
    shape[shard_dim] = 0
    return shards + [shards[0].new_empty(shape) for _ in range(num_empty_tensors)]


def check_tensor_meta(local_tensor: Tensor, check_shape_stride: bool = False) -> Any:
    """Does each process have a tensor of the same type (and shape)?"""
    mine: dict[str, Any] = {"dtype": local_tensor.dtype,
                            "requires_grad": local_tensor.requires_grad}
    if check_shape_stride:
        mine.update(shape=local_tensor.shape, stride=local_tensor.stride())
    found: list[Any] = [None] * c10d.get_world_size()
    c10d.all_gather_object(found, mine)
    for key, value in mine.items():
        others = [other[key] for other in found]
        if any(other != value for other in others):
            raise ValueError(f"Inconsistent tensor metadata (including shape and stride) across "
                             f"ranks: {key} is {others}")
    return None


# ---- costs --------------------------------------------------------------------------------------
#
# Of a collective: hops, each with a latency, and the bytes that pass each process, over the
# bandwidth; in microseconds, for links as inside a machine. What counts is which is cheaper.

@dataclass
class MeshTopoInfo:
    """How many processes each dimension of a mesh has, and how well they are connected."""
    mesh: Any
    mesh_dim_devices: list[int]
    mesh_dim_bandwidth: list[float]
    mesh_dim_latency: list[float]

    @staticmethod
    def build_from_mesh(mesh: Any) -> MeshTopoInfo:
        """Each dimension further to the left crosses slower links."""
        bandwidth, latency = [87.7] * mesh.ndim, [0.6] * mesh.ndim
        devices = [mesh.size(i) for i in range(mesh.ndim)]
        inside = 1
        for i in reversed(range(mesh.ndim)):
            inside *= devices[i]
            if inside > 8:
                bandwidth[i], latency[i] = bandwidth[i] * 0.22, 2.7
        return MeshTopoInfo(mesh, devices, bandwidth, latency)


def _cost(bytes_gb: float, topo: MeshTopoInfo, mesh_dim: int, rounds: int) -> float:
    count = topo.mesh_dim_devices[mesh_dim]
    hops = rounds * (count - 1) + (rounds > 1)
    moved = bytes_gb * hops / count / topo.mesh_dim_bandwidth[mesh_dim]
    return 6.6 + hops * topo.mesh_dim_latency[mesh_dim] + moved * 1e6


def allgather_cost(bytes_gb: float, mesh_topo: MeshTopoInfo, mesh_dim: int) -> float:
    """What `all_gather` costs."""
    return _cost(bytes_gb, mesh_topo, mesh_dim, 1)


def reduce_scatter_cost(bytes_gb: float, mesh_topo: MeshTopoInfo, mesh_dim: int) -> float:
    """What `reduce_scatter` costs."""
    return _cost(bytes_gb, mesh_topo, mesh_dim, 1)


def allreduce_cost(bytes_gb: float, mesh_topo: MeshTopoInfo, mesh_dim: int) -> float:
    """What `all_reduce` costs."""
    return _cost(bytes_gb, mesh_topo, mesh_dim, 2)


def spec_to_bytes(spec: Any) -> int:
    """The bytes of a tensor, all pieces."""
    meta = spec.tensor_meta
    assert meta is not None, "spec should have tensor meta defined!"
    return meta.dtype.itemsize * prod(meta.shape)


def redistribute_cost(current_spec: Any, target_spec: Any) -> float:
    """What it costs to place a tensor in another way; infinite where it cannot be done."""
    if current_spec.mesh != target_spec.mesh:
        return float("inf")
    if current_spec.is_replicated():
        return 0.0
    topo = MeshTopoInfo.build_from_mesh(current_spec.mesh)
    size = spec_to_bytes(current_spec) / current_spec.num_shards / 2 ** 30
    total = 0.0
    for i, (current, target) in enumerate(zip(current_spec.placements, target_spec.placements)):
        cost, size = placement_cost(current, target, topo, i, size)
        total += cost
    return total


def placement_cost(current: Any, target: Any, topo: MeshTopoInfo, mesh_dim: int, size_gb: float
                   ) -> tuple[float, float]:
    """What one dimension of the mesh costs, and the size of a piece after it."""
    count = topo.mesh_dim_devices[mesh_dim]
    if current == target or (current.is_partial() and current.reduce_op == getattr(
            target, "reduce_op", None)):
        return 0.0, size_gb
    sharded = current.is_shard() or hasattr(current, "split_factor")
    if sharded and target.is_replicate():
        return allgather_cost(size_gb * count, topo, mesh_dim), size_gb * count
    if sharded and (target.is_shard() or hasattr(target, "split_factor")):
        return allgather_cost(size_gb, topo, mesh_dim) + 1.0, size_gb
    if current.is_partial() and target.is_replicate():
        return allreduce_cost(size_gb, topo, mesh_dim), size_gb
    if current.is_partial() and target.is_shard():
        return reduce_scatter_cost(size_gb, topo, mesh_dim), size_gb / count
    if target.is_partial() and not current.is_replicate():
        return float("inf"), size_gb
    return 0.0, size_gb / count if target.is_shard() else size_gb


def one_step_redistribute_cost(current_spec: Any, target_spec: Any) -> float:
    """What it costs where one placement changes."""
    changed = [i for i, (current, target) in enumerate(zip(
        current_spec.placements, target_spec.placements)) if current != target]
    if len(changed) > 1:
        raise ValueError("one_step_redistribute_cost expects specs that differ by exactly one "
                         "placement")
    return redistribute_cost(current_spec, target_spec)
