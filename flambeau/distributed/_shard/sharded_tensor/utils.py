"""Agreement of all processes on what a sharded tensor is."""
from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.distributed import distributed_c10d as dist
from flambeau.distributed._shard.metadata import ShardMetadata
from flambeau.distributed._shard.sharded_tensor.metadata import (
    ShardedTensorMetadata,
    TensorProperties,
)
from flambeau.distributed._shard.sharded_tensor.shard import Shard
from flambeau.distributed._shard.sharding_spec._internals import (
    check_tensor,
    validate_non_overlapping_shards_metadata,
)


def _parse_and_validate_remote_device(pg: Any, remote_device: Any) -> tuple[int, flambeau.device]:
    """The rank in the group, and the device, of a placement."""
    if remote_device is None:
        raise ValueError("remote device is None")
    name, rank = remote_device.worker_name(), remote_device.rank()
    if rank is not None and dist.get_rank(pg) >= 0:
        if rank not in dist.get_process_group_ranks(pg):
            raise ValueError(f"Global rank {rank} does not exist in input process group: "
                             f"{dist.get_process_group_ranks(pg)}")
        rank = dist.get_group_rank(dist._get_default_group() if pg is None else pg, rank)
    if name is not None:
        import flambeau.distributed.rpc as rpc
        if not rpc._is_current_rpc_agent_set():
            raise RuntimeError("RPC framework needs to be initialized for using worker names: "
                               f"{name}")
        for worker in rpc._get_current_rpc_agent().get_worker_infos():
            if worker.name == name:
                return worker.id, remote_device.device()
        raise ValueError(f"Invalid worker name: {name}")
    return rank, remote_device.device()


def _validate_output_tensor_for_gather(my_rank: int, dst_rank: int, size: flambeau.Size,
                                       dst_tensor: Tensor | None) -> None:
    if dst_rank == my_rank:
        if dst_tensor is None:
            raise ValueError("Argument ``dst_tensor`` must be specified on destination rank "
                             f"{dst_rank}")
        if tuple(size) != tuple(dst_tensor.size()):
            raise ValueError(f"Argument ``dst_tensor`` have size {tuple(dst_tensor.size())},but "
                             f"should be {tuple(size)}")
    elif dst_tensor:
        raise ValueError("Argument ``dst_tensor`` must NOT be specified on non-destination ranks.")


def _flatten_tensor_size(size: Any) -> flambeau.Size:
    """The size of a call: some numbers, or one sequence of them."""
    dims = list(size[0]) if len(size) == 1 and isinstance(size[0], Sequence) else list(size)
    for dim in dims:
        if not isinstance(dim, int):
            raise TypeError(f"size has to be a sequence of ints, found: {dims}")
    return flambeau.Size(dims)


def _raise_if_mismatch(expected: Any, actual: Any, prop_name: str, ranks: Any,
                       is_local: bool = True) -> None:
    if is_local:
        if expected != actual:
            raise ValueError(f"Local shards' tensor {prop_name} property need to be the same on "
                             f"rank:{ranks}! Found one local shard tensor {prop_name}={expected}, "
                             f"the other local shard tensor {prop_name}={actual}.")
    elif expected != actual:
        raise ValueError(f"ShardedTensor {prop_name} property does not match from different "
                         f"ranks! Found {prop_name}={expected} on rank:{ranks[0]}, and "
                         f"{prop_name}={actual} on rank:{ranks[1]}.")


def build_metadata_from_local_shards(local_shards: list[Shard], global_size: flambeau.Size,
                                     current_rank: int, pg: Any) -> ShardedTensorMetadata:
    """What the pieces of this process say of the whole."""
    assert len(local_shards) > 0, "must have local shards!"
    first = local_shards[0].tensor
    metadata = []
    for shard in local_shards:
        tensor, about = shard.tensor, shard.metadata
        metadata.append(about)
        rank, device = _parse_and_validate_remote_device(pg, about.placement)
        if tensor.layout != flambeau.strided:
            raise ValueError("Only torch.strided layout is currently supported")
        if not tensor.is_contiguous():
            raise ValueError("Only torch.contiguous_format memory_format is currently supported!")
        if rank != current_rank:
            raise ValueError("Local shard metadata's rank does not match with the rank in its "
                             "process group! Found current rank in the process group: "
                             f"{current_rank}, local ShardMetadata placement's rank: {rank}")
        if device != tensor.device:
            raise ValueError("Local shard tensor device does not match with local Shard's "
                             f"placement! Found local shard tensor device: {tensor.device}, "
                             f"local shard metadata placement device: {device}")
        _raise_if_mismatch(about.shard_sizes, list(tensor.size()), "size", current_rank)
        _raise_if_mismatch(tensor.is_pinned(), first.is_pinned(), "pin_memory", current_rank)
        _raise_if_mismatch(tensor.dtype, first.dtype, "dtype", current_rank)
        _raise_if_mismatch(tensor.requires_grad, first.requires_grad, "requires_grad",
                           current_rank)
    return ShardedTensorMetadata(metadata, global_size, TensorProperties.create_from_tensor(first))


def validate_local_shard(shard: Shard, properties: TensorProperties) -> None:
    """Raise if a piece is not what its metadata, and those of the whole tensor, say."""
    tensor, about = shard.tensor, shard.metadata
    assert about.placement is not None, "Must specify placement for `Shard`!"
    if not tensor.is_contiguous():
        raise ValueError("Only torch.contiguous_format memory_format is currently supported")
    said = "local ShardMetadata"
    for name, where, expected, actual in (
            ("layout", "tensor property", properties.layout, tensor.layout),
            ("size", said, about.shard_sizes, list(tensor.size())),
            ("pin_memory", "tensor property", properties.pin_memory, tensor.is_pinned()),
            ("device", said, about.placement.device(), tensor.device),
            ("dtype", "tensor property", properties.dtype, tensor.dtype),
            ("requires_grad", "tensor property", properties.requires_grad,
             tensor.requires_grad)):
        if expected != actual:
            raise ValueError(f"Local shards' tensor {name} property is incompatible with {where} "
                             f"on rank {about.placement.rank()}: {where} {name}={expected}, local "
                             f"shard tensor {name}={actual}.")


def build_global_metadata(gathered_metadatas: Sequence[ShardedTensorMetadata | None],
                          recalc_metadata: bool = False) -> ShardedTensorMetadata:
    """What all processes say together."""
    found: ShardedTensorMetadata | None = None
    first_rank = 0
    for rank, about in enumerate(gathered_metadatas):
        if about is None:
            continue
        if found is None:
            found, first_rank = copy.deepcopy(about), rank
            continue
        ranks = first_rank, rank
        _raise_if_mismatch(found.size, about.size, "global_size", ranks, is_local=False)
        ours, theirs = found.tensor_properties, about.tensor_properties
        for name in ("dtype", "requires_grad", "pin_memory"):
            _raise_if_mismatch(getattr(ours, name), getattr(theirs, name), name, ranks,
                               is_local=False)
        found.shards_metadata.extend(about.shards_metadata)
    if found is None:
        raise ValueError("ShardedTensor have no local shards on all ranks!")
    if recalc_metadata:
        recalc_global_sharded_tensor_metadata(found, 0)
    validate_non_overlapping_shards_metadata(found.shards_metadata)
    check_tensor(found.shards_metadata, found.size)
    return found


def recalc_global_sharded_tensor_metadata(
        global_sharded_tensor_metadata: ShardedTensorMetadata, sharded_dim: int) -> None:
    """Let pieces follow each other along a dimension, in the order of their processes."""
    offset = 0
    shards: list[ShardMetadata] = sorted(
        global_sharded_tensor_metadata.shards_metadata,
        key=lambda shard: (shard.placement.rank() if shard.placement else 0))
    for shard in shards:
        shard.shard_offsets[:] = [0] * len(shard.shard_offsets)
        shard.shard_offsets[sharded_dim] = offset
        offset += shard.shard_sizes[sharded_dim]
    size = list(global_sharded_tensor_metadata.size)
    size[sharded_dim] = offset
    global_sharded_tensor_metadata.size = flambeau.Size(size)
