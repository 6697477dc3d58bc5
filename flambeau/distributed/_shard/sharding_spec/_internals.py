"""Do pieces cover a tensor, each part of it once? And the sizes of equal pieces."""
from __future__ import annotations

from math import prod
from typing import Any

from flambeau.distributed._shard.metadata import ShardMetadata


def _check_shard_metadata_pair_overlap(shard1: ShardMetadata, shard2: ShardMetadata) -> bool:
    """Have two pieces something in common?"""
    return all(a < b + n and b < a + m for a, m, b, n in zip(
        shard1.shard_offsets, shard1.shard_sizes, shard2.shard_offsets, shard2.shard_sizes))


def _find_nd_overlapping_shards(shards: list[ShardMetadata],
                                sharded_dims: list[int]) -> tuple[int, int] | None:
    """Two pieces that have something in common; looks at the dimensions that are cut."""
    for i, first in enumerate(shards):
        for j in range(i + 1, len(shards)):
            second = shards[j]
            if all(first.shard_offsets[d] < second.shard_offsets[d] + second.shard_sizes[d]
                   and second.shard_offsets[d] < first.shard_offsets[d] + first.shard_sizes[d]
                   for d in sharded_dims):
                return i, j
    return None


def _find_1d_overlapping_shards(shards: list[ShardMetadata], dim: int) -> tuple[int, int] | None:
    """Two pieces that have something in common, where one dimension is cut."""
    places = sorted((s.shard_offsets[dim], s.shard_offsets[dim] + s.shard_sizes[dim] - 1, i)
                    for i, s in enumerate(shards))
    for (_, end, i), (begin, _, j) in zip(places, places[1:]):
        if begin <= end:
            return i, j
    return None


def validate_non_overlapping_shards_metadata(shards: list[ShardMetadata]) -> None:
    """Raise if two pieces have something in common."""
    if not shards or len(shards) == 1:
        return
    cut = []
    for dim in range(len(shards[0].shard_offsets)):
        first = shards[0].shard_offsets[dim], shards[0].shard_sizes[dim]
        for shard in shards[1:]:
            if len(shard.shard_offsets) != len(shards[0].shard_offsets):
                raise ValueError("Found inconsistent ranks for shards: "
                                 f"{len(shards[0].shard_offsets)} and {len(shard.shard_offsets)}")
            if (shard.shard_offsets[dim], shard.shard_sizes[dim]) != first and dim not in cut:
                cut.append(dim)
    if not cut:                                 # all are the same, and nothing if one is empty
        pair = (0, 1) if all(prod(shard.shard_sizes) for shard in shards) else None
    elif len(cut) == 1:
        pair = _find_1d_overlapping_shards(shards, cut[0])
    else:
        pair = _find_nd_overlapping_shards(shards, cut)
    if pair is not None:
        raise ValueError(f"Shards {shards[pair[0]]} and {shards[pair[1]]} overlap")


def check_tensor(shards_metadata: list[ShardMetadata], tensor_dims: Any) -> None:
    """Raise if pieces do not cover a tensor of this shape."""
    rank, shards_rank = len(tensor_dims), len(shards_metadata[0].shard_offsets)
    if rank != shards_rank:
        raise ValueError(f"Rank of tensor is {rank}, but shards rank is {shards_rank}")
    volume = 0
    for shard in shards_metadata:
        volume += prod(shard.shard_sizes)
        for dim, (offset, size) in enumerate(zip(shard.shard_offsets, shard.shard_sizes)):
            if offset + size > tensor_dims[dim]:
                raise ValueError(f"Shard offset {offset} and length {size} exceeds tensor dim: "
                                 f"{tensor_dims[dim]} for shard {shard}")
    whole = prod(tensor_dims)
    if volume != whole:
        raise ValueError(f"Total volume of shards: {volume} does not match tensor volume: {whole}, "
                         "in other words all the individual shards do not cover the entire tensor")


def get_split_size(dim_size: int, chunks: int) -> int:
    """The size of each piece but the last, as of `flambeau.chunk`."""
    return (dim_size + chunks - 1) // chunks


def get_chunked_dim_size(dim_size: int, split_size: int, idx: int) -> int:
    """The size of piece `idx`."""
    return max(min(dim_size, split_size * (idx + 1)) - split_size * idx, 0)


def get_chunk_sharding_params(sharding_dim_size: int, world_size: int, spec: Any,
                              rank: int) -> tuple[int, int]:
    """Where the piece of a process begins along the dimension that is cut, and its size."""
    split = get_split_size(sharding_dim_size, world_size)
    for idx, placement in enumerate(spec.placements):
        if placement.rank() == rank:
            size = get_chunked_dim_size(sharding_dim_size, split, idx)
            return min(split * idx, sharding_dim_size), size
    return -1, -1
