"""Tensors of which each process has some rows."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.distributed import distributed_c10d as dist
from flambeau.distributed._shard.metadata import ShardMetadata
from flambeau.distributed._shard.sharded_tensor import (
    Shard,
    ShardedTensor,
    ShardedTensorMetadata,
    TensorProperties,
)


def _get_remote_device_str(rank: int, device_type: str, num_devices_per_node: int) -> str:
    if device_type.lower() == "cpu":
        return f"rank:{rank}/{device_type}"
    return f"rank:{rank}/{device_type}:{rank % num_devices_per_node}"


def _create_chunk_sharded_tensor(tensor: Tensor, rank: int, world_size: int,
                                 num_devices_per_node: int, pg: Any,
                                 device: Any = None) -> ShardedTensor:
    """The rows of a tensor that are this process's, as of `flambeau.chunk`; where there are fewer
    chunks than processes, some have none."""
    chunks = tensor.chunk(world_size, dim=0) if tensor.dim() else (tensor,)
    shards, offset, pieces = [], 0, []
    for i, chunk in enumerate(chunks):
        offsets = [offset, *[0] * (tensor.dim() - 1)] if tensor.dim() else []
        place = _get_remote_device_str(dist.get_global_rank(pg, i), "cpu", num_devices_per_node)
        pieces.append(ShardMetadata(offsets, list(chunk.size()), place))
        if i == rank:
            shards.append(Shard(chunk.clone(), pieces[-1]))
        offset += chunk.size(0) if tensor.dim() else 0
    about = ShardedTensorMetadata(pieces, tensor.size(), TensorProperties(
        dtype=tensor.dtype, layout=tensor.layout, requires_grad=False,
        memory_format=flambeau.contiguous_format, pin_memory=False))
    return ShardedTensor._init_from_local_shards_and_global_metadata(
        shards, sharded_tensor_metadata=about, process_group=pg)


def _create_chunk_dtensor(tensor: Tensor, rank: int, device_mesh: Any) -> Any:
    """The rows of a tensor that are this process's, along the last dimension of a mesh."""
    from flambeau.distributed.tensor import Replicate, distribute_tensor
    from flambeau.distributed.tensor import Shard as Rows
    placements = [*[Replicate()] * (device_mesh.ndim - 1), Rows(0)]
    return distribute_tensor(tensor.detach().clone(), device_mesh, placements,
                             src_data_rank=None)


def _all_gather_dtensor(tensor: Any, root_mesh: Any) -> Tensor:
    """The whole of a tensor."""
    return tensor.full_tensor()
