"""Pieces that become those of another cut."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.distributed import distributed_c10d as dist
from flambeau.distributed._shard.metadata import ShardMetadata
from flambeau.distributed._shard.sharded_tensor.shard import Shard
from flambeau.distributed._shard.sharding_spec._internals import (
    get_chunked_dim_size,
    get_split_size,
)


def get_idx_from_placements(placements: Any, current_rank: int) -> int:
    """The number of the piece that a process has."""
    for idx, placement in enumerate(placements):
        if current_rank == placement.rank():
            return idx
    raise RuntimeError("current_rank not in the placement.")


def build_reshard_metadata(st_size: flambeau.Size, sharding_spec: Any,
                           world_size: int) -> tuple[list[ShardMetadata], list[int]]:
    """The pieces in the order of their processes, and the processes in that of the pieces."""
    dim = int(sharding_spec.dim)
    split = get_split_size(st_size[dim], world_size)
    by_rank: list[Any] = [None] * world_size
    ranks = []
    for idx, placement in enumerate(sharding_spec.placements):
        rank = placement.rank()
        ranks.append(rank)
        sizes, offsets = list(st_size), [0] * len(st_size)
        sizes[dim] = get_chunked_dim_size(st_size[dim], split, idx)
        offsets[dim] = min(split * idx, st_size[dim])
        by_rank[rank] = ShardMetadata(offsets, sizes, placement)
    return by_rank, ranks


def _exchange(parts: list[Tensor], shapes: list[list[int]], pg: Any) -> list[Tensor]:
    """Send part i to process i; what all have sent here."""
    received = [parts[0].new_empty(shape) for shape in shapes]
    dist.all_to_all(received, [part.contiguous() for part in parts], group=pg)
    return received


def reshuffle_local_shard(local_shard: Tensor, st_size: flambeau.Size,
                          sharding_spec: Any, resharding_spec: Any,
                          pg: Any) -> tuple[list[Shard], list[ShardMetadata]]:
    """The piece that this process has when the same pieces have other owners."""
    world_size, rank = dist.get_world_size(pg), dist.get_rank(pg)
    after, _ = build_reshard_metadata(st_size, resharding_spec, world_size)
    before, _ = build_reshard_metadata(st_size, sharding_spec, world_size)
    to = next(r for r, shard in enumerate(after)
              if shard.shard_offsets == before[rank].shard_offsets
              and shard.shard_sizes == before[rank].shard_sizes)
    source = next(r for r, shard in enumerate(before)
                  if shard.shard_offsets == after[rank].shard_offsets
                  and shard.shard_sizes == after[rank].shard_sizes)
    nothing = [0] * len(st_size)
    parts = [local_shard.detach() if r == to else local_shard.new_empty(nothing)
             for r in range(world_size)]
    shapes = [after[rank].shard_sizes if r == source else nothing for r in range(world_size)]
    found = _exchange(parts, shapes, pg)[source]
    return [Shard(found, after[rank])], after


def reshard_local_shard(local_tensor: Tensor, st_size: flambeau.Size, sharding_spec: Any,
                        resharding_spec: Any, pg: Any
                        ) -> tuple[list[Shard], list[ShardMetadata]]:
    """The piece that this process has when another dimension is cut."""
    world_size, rank = dist.get_world_size(pg), dist.get_rank(pg)
    old_dim, new_dim = int(sharding_spec.dim), int(resharding_spec.dim)
    after, _ = build_reshard_metadata(st_size, resharding_spec, world_size)
    before, old_ranks = build_reshard_metadata(st_size, sharding_spec, world_size)
    parts, shapes = [], []
    for r in range(world_size):
        parts.append(local_tensor.detach().narrow(new_dim, after[r].shard_offsets[new_dim],
                                                  after[r].shard_sizes[new_dim]))
        shape = list(after[rank].shard_sizes)
        shape[old_dim] = before[r].shard_sizes[old_dim]
        shapes.append(shape)
    received = _exchange(parts, shapes, pg)
    whole = flambeau.cat([received[r] for r in old_ranks], dim=old_dim)
    return [Shard(whole, after[rank])], after
