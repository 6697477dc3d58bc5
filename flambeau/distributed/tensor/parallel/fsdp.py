"""Distributed parameters under fully sharded data parallelism: their local tensors are cut again.

`DTensorExtensions` turns a `DTensor` into pieces and back. `FullyShardedDataParallel` does not
take modules with such parameters yet; `fully_shard` does.
"""
from __future__ import annotations

import copy
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.distributed import _remote_device
from flambeau.distributed import distributed_c10d as dist
from flambeau.distributed._shard.metadata import ShardMetadata
from flambeau.distributed._shard.sharded_tensor import (
    Shard,
    ShardedTensor,
    ShardedTensorMetadata,
    TensorProperties,
)
from flambeau.distributed._shard.sharding_spec import ChunkShardingSpec, ShardingSpec
from flambeau.distributed.fsdp._common_utils import _set_fsdp_flattened
from flambeau.distributed.fsdp._fsdp_extensions import FSDPExtensions
from flambeau.distributed.fsdp._shard_utils import _create_chunk_sharded_tensor
from flambeau.distributed.tensor import DTensor, Replicate
from flambeau.distributed.tensor import Shard as DShard
from flambeau.distributed.tensor._utils import _compute_local_shape_and_global_offset
from flambeau.distributed.tensor.parallel._data_parallel_utils import (
    _flatten_tensor,
    _unflatten_tensor,
)

__all__ = ["DTensorExtensions"]


# ---- where pieces lie ---------------------------------------------------------------------------

def _check_one_dimension(tensor: DTensor) -> None:
    assert tensor.device_mesh.ndim == 1, "Only 1D DeviceMeshes currently handled"


def _piece(tensor: DTensor, index: int) -> tuple[list[int], list[int]]:
    """Offsets and sizes of the piece that a process of the mesh has."""
    shape, offset = _compute_local_shape_and_global_offset(
        tensor.shape, tensor.device_mesh.shape, [index], tensor.placements)
    return list(offset), list(shape)


def _get_box(tensor: DTensor) -> tuple[flambeau.Size, flambeau.Size]:
    """How far even pieces lie apart, and the sizes of the one of this process."""
    _check_one_dimension(tensor)
    offsets, placement = [0] * tensor.ndim, tensor.placements[0]
    if isinstance(placement, DShard):
        offsets[placement.dim] = tensor.size(placement.dim) // tensor.device_mesh.size()
    return flambeau.Size(offsets), tensor._local_tensor.size()


def _get_box_for(tensor: DTensor, idx: int) -> tuple[flambeau.Size, flambeau.Size]:
    """Offsets and sizes of an even piece."""
    offsets, sizes = _get_box(tensor)
    return flambeau.Size([offset * idx for offset in offsets]), sizes


def _get_local_box(tensor: DTensor) -> tuple[flambeau.Size, flambeau.Size]:
    """The same, of the piece of this process."""
    return _get_box_for(tensor, tensor.device_mesh.get_local_rank())


def _create_shard_md_from_dt(dt: DTensor, current_rank: int) -> ShardMetadata:
    """Where the piece of this process lies, as that of the process `current_rank`."""
    _check_one_dimension(dt)
    offsets, sizes = _piece(dt, dt.device_mesh.get_local_rank())
    return ShardMetadata(offsets, sizes, f"rank:{current_rank}/{dt._local_tensor.device}")


def _create_sharded_tensor_md_from_dt(dt: DTensor, dt_pg: Any) -> ShardedTensorMetadata:
    """Where all pieces lie; of a tensor that is whole everywhere, the one of this process."""
    if not dt.placements[0].is_shard():
        pieces = [_create_shard_md_from_dt(dt, dist.get_rank())]
    else:
        pieces = [ShardMetadata(*_piece(dt, i), f"rank:{rank}/{dt._local_tensor.device}")
                  for i, rank in enumerate(dist.get_process_group_ranks(dt_pg))]
    return ShardedTensorMetadata(pieces, dt.size(), TensorProperties(
        dtype=dt.dtype, layout=dt.layout, requires_grad=False))


def _get_dt_pg(dt: DTensor) -> Any:
    """The processes that share a tensor."""
    _check_one_dimension(dt)
    return dt.device_mesh.get_group()


def _rewrite_spec_if_needed(spec: ShardingSpec, tensor: Tensor, rank: int) -> ShardingSpec:
    """`spec` with the tensor's device as that of this process."""
    if not isinstance(spec, ChunkShardingSpec):
        return spec
    wrong = [i for i, place in enumerate(spec.placements)
             if isinstance(place, _remote_device) and place.rank() == rank
             and place.device() != tensor.device]
    if wrong:
        spec = copy.deepcopy(spec)
        for i in wrong:
            spec.placements[i] = _remote_device(f"rank:{rank}/{tensor.device}")
    return spec


# ---- pieces -------------------------------------------------------------------------------------

def _chunk_tensor(tensor: Tensor, rank: int, world_size: int, num_devices_per_node: int,
                  pg: Any) -> Tensor:
    """The rows that are this process's; of a distributed tensor, rows of its local one, as a
    sharded tensor within a sharded tensor."""
    if not isinstance(tensor, DTensor):
        return _create_chunk_sharded_tensor(tensor, rank, world_size, num_devices_per_node, pg)
    group = _get_dt_pg(tensor)
    inner = _create_chunk_sharded_tensor(tensor._local_tensor.detach(), rank, world_size,
                                         num_devices_per_node, pg)
    outer = Shard(inner, _create_shard_md_from_dt(tensor, dist.get_rank()))
    return ShardedTensor._init_from_local_shards_and_global_metadata(
        [outer], sharded_tensor_metadata=_create_sharded_tensor_md_from_dt(tensor, group),
        process_group=group)


def _chunk_dtensor(tensor: Tensor, rank: int, device_mesh: Any) -> DTensor:
    """The rows that are this process's, on the whole mesh of which `device_mesh` is a part: along
    its last dimension tensors are cut as they were, along the one before by rows."""
    mesh = device_mesh._get_root_mesh()
    if mesh.ndim < 2:
        raise RuntimeError(f"Found parent device_mesh of ndim={mesh.ndim}, but meshes must be at "
                           "least 2D.")
    tensor = tensor.detach().clone()
    inner = tensor.placements[0] if isinstance(tensor, DTensor) else Replicate()
    local = tensor.to_local() if isinstance(tensor, DTensor) else tensor
    before = [Replicate()] * (mesh.ndim - 2)
    return DTensor.from_local(local, mesh, [*before, Replicate(), inner], run_check=False
                              ).redistribute(placements=[*before, DShard(0), inner])


def _pre_load_state_dict(tensor: Any) -> tuple[Tensor, list[Shard]]:
    """The sharded tensor to load, and its pieces here: the inner ones of a nested one."""
    shards = tensor.local_shards()
    if len(shards) == 1 and isinstance(shards[0].tensor, ShardedTensor):
        return shards[0].tensor, shards[0].tensor.local_shards()
    return tensor, shards


def _all_gather_dtensor(tensor: DTensor, parent_mesh: Any) -> Tensor:
    """The local tensor along the last dimension of the mesh; along the others it is gathered."""
    assert parent_mesh == tensor.device_mesh, "the tensor lies on another mesh"
    placements = [*[Replicate()] * (len(tensor.placements) - 1), tensor.placements[-1]]
    return tensor.redistribute(placements=placements).to_local()


class DTensorExtensions(FSDPExtensions):
    """Makes distributed tensors flat and cuts their local tensors into pieces.

    >>> from flambeau import distributed as dist
    >>> from flambeau.distributed.tensor import distribute_tensor
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> mesh = dist.init_device_mesh("cpu", (1, 1), mesh_dim_names=("data", "model"))
    >>> weight = distribute_tensor(flambeau.ones(2, 3), mesh["model"], [DShard(1)])
    >>> extensions = DTensorExtensions(None)
    >>> piece = extensions.chunk_dtensor(weight, 0, mesh["data"])
    >>> piece.placements
    (Shard(dim=0), Shard(dim=1))
    >>> extensions.all_gather_dtensor(piece, mesh)
    tensor([[1., 1., 1.],
            [1., 1., 1.]])
    >>> dist.destroy_process_group()
    """

    def __init__(self, device_handle: Any):
        super().__init__()
        self.device_handle = device_handle

    def pre_flatten_transform(self, tensor: Tensor) -> tuple[Tensor, Any | None]:
        return _flatten_tensor(tensor)

    def post_unflatten_transform(self, tensor: Tensor, param_extension: Any) -> Tensor:
        whole = _unflatten_tensor(tensor, param_extension)
        _set_fsdp_flattened(whole)
        return whole

    def chunk_tensor(self, tensor: Tensor, rank: int, world_size: int, num_devices_per_node: int,
                     pg: Any, device: Any = None) -> Tensor:
        return _chunk_tensor(tensor, rank, world_size, num_devices_per_node, pg)

    def chunk_dtensor(self, tensor: Tensor, rank: int, device_mesh: Any) -> Tensor:
        return _chunk_dtensor(tensor, rank, device_mesh)

    def pre_load_state_dict_transform(self, tensor: Tensor) -> tuple[Tensor, list[Shard]]:
        return _pre_load_state_dict(tensor)

    def all_gather_dtensor(self, tensor: DTensor, parent_mesh: Any) -> Tensor:
        return _all_gather_dtensor(tensor, parent_mesh)
