"""Equal pieces along one dimension."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.distributed import distributed_c10d as dist
from flambeau.distributed._shard._utils import narrow_tensor
from flambeau.distributed._shard.metadata import ShardMetadata
from flambeau.distributed._shard.sharding_spec._internals import (
    get_chunked_dim_size,
    get_split_size,
)
from flambeau.distributed._shard.sharding_spec.api import ShardingSpec
from flambeau.distributed.remote_device import _remote_device


@dataclass
class ChunkShardingSpec(ShardingSpec):
    """Pieces along dimension `dim` as of `flambeau.chunk`, one for each of `placements`.

    >>> ChunkShardingSpec(dim=0, placements=["rank:0/cpu", "rank:1/cpu"])
    ChunkShardingSpec(dim=0, placements=[rank:0/cpu, rank:1/cpu])
    """
    dim: int | str
    placements: list[_remote_device | str]

    def __post_init__(self) -> None:
        self._verify_dim(self.dim)
        for i, remote_device in enumerate(self.placements):
            if not isinstance(remote_device, _remote_device):
                self.placements[i] = _remote_device(remote_device)

    @staticmethod
    def _verify_dim(dim: Any) -> None:
        if isinstance(dim, str):
            raise NotImplementedError("ChunkShardingSpec does not support named dimension yet!")
        if not isinstance(dim, int):
            raise ValueError(f"Sharding dim needs to be an integer, found: {dim}")

    def build_metadata(self, tensor_sizes: Any, tensor_properties: Any) -> Any:
        from flambeau.distributed._shard.sharded_tensor.metadata import ShardedTensorMetadata
        self._verify_dim(self.dim)
        assert isinstance(self.dim, int)
        if not -len(tensor_sizes) <= self.dim < len(tensor_sizes):
            raise ValueError(f"Invalid sharding dim: {self.dim}")
        dim = self.dim % len(tensor_sizes)
        extent = tensor_sizes[dim]
        split = get_split_size(extent, len(self.placements))
        shards = []
        for i, placement in enumerate(self.placements):
            sizes, offsets = list(tensor_sizes), [0] * len(tensor_sizes)
            sizes[dim] = get_chunked_dim_size(extent, split, i)
            offsets[dim] = min(split * i, extent)
            shards.append(ShardMetadata(offsets, sizes, placement))
        return ShardedTensorMetadata(shards, tensor_sizes, tensor_properties)

    def shard(self, tensor: Tensor, src_rank: int = 0, process_group: Any = None) -> Any:
        from flambeau.distributed._shard.sharded_tensor import Shard, ShardedTensor
        from flambeau.distributed._shard.sharded_tensor.metadata import TensorProperties
        from flambeau.distributed._shard.sharded_tensor.utils import (
            _parse_and_validate_remote_device,
        )
        group = dist._get_default_group() if process_group is None else process_group
        properties = TensorProperties(dtype=tensor.dtype, layout=tensor.layout,
                                      requires_grad=tensor.requires_grad,
                                      memory_format=flambeau.contiguous_format,
                                      pin_memory=tensor.is_pinned())
        about = self.build_metadata(tensor.size(), properties)
        rank = dist.get_rank(group)
        largest = [get_split_size(n, len(self.placements)) if d == self.dim % tensor.ndim else n
                   for d, n in enumerate(tensor.size())]
        mine, parts = None, []
        for shard in about.shards_metadata:
            owner, _ = _parse_and_validate_remote_device(group, shard.placement)
            if owner == rank:
                mine = shard
            if rank == src_rank:
                part = tensor.new_zeros(largest)
                narrow_tensor(part, ShardMetadata([0] * tensor.ndim, shard.shard_sizes)).copy_(
                    narrow_tensor(tensor.detach(), shard))
                parts.append((owner, part))
        received = tensor.new_empty(largest)
        every = [part for _, part in sorted(parts, key=lambda pair: pair[0])] or None
        dist.scatter(received.detach(), every,
                     src=dist.get_global_rank(group, src_rank), group=group)
        shards = []
        if mine is not None:
            whole = ShardMetadata([0] * tensor.ndim, mine.shard_sizes)
            local = narrow_tensor(received, whole).detach().clone()
            shards.append(Shard(local.requires_grad_(tensor.requires_grad), mine))
        return ShardedTensor._init_from_local_shards_and_global_metadata(
            shards, about, process_group=group)
