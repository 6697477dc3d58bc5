"""What pieces of a tensor that were saved have in common with those that are wanted."""
from __future__ import annotations

from flambeau.distributed.checkpoint.metadata import ChunkStorageMetadata

__all__: list[str] = []


def _check_shard_metadata_pair_overlap(shard1: ChunkStorageMetadata,
                                       shard2: ChunkStorageMetadata) -> bool:
    """Have two pieces something in common?"""
    return all(a < b + n and b < a + m for a, m, b, n in zip(
        shard1.offsets, shard1.sizes, shard2.offsets, shard2.sizes))


def _shards_get_overlap_region_wrt_saved_tensor(
        saved_shard: ChunkStorageMetadata,
        current_shard: ChunkStorageMetadata) -> list[tuple[int, int, int, int]]:
    """For each dimension: its number, where what two pieces have in common begins in the saved and
    in the wanted one, and its length."""
    found = []
    for dim, (saved, saved_size, wanted, wanted_size) in enumerate(zip(
            saved_shard.offsets, saved_shard.sizes, current_shard.offsets, current_shard.sizes)):
        begin = max(saved, wanted)
        length = min(saved + saved_size, wanted + wanted_size) - begin
        found.append((dim, begin - saved, begin - wanted, length))
    return found
