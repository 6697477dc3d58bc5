"""What saved and wanted pieces have in common."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau.distributed.checkpoint.metadata import ChunkStorageMetadata
from flambeau.distributed.checkpoint.resharding import (
    _check_shard_metadata_pair_overlap,
    _shards_get_overlap_region_wrt_saved_tensor,
)


def piece(offsets, sizes):
    return ChunkStorageMetadata(torch.Size(offsets), torch.Size(sizes))


@pytest.mark.parametrize(("first", "second", "common"), [
    (((0,), (4,)), ((2,), (4,)), True), (((0,), (4,)), ((4,), (4,)), False),
    (((0, 0), (2, 2)), ((1, 1), (1, 1)), True), (((0, 0), (2, 2)), ((1, 2), (1, 1)), False),
    (((), ()), ((), ()), True), (((5,), (1,)), ((0,), (9,)), True)])
def test_overlap(first, second, common):
    a, b = piece(*first), piece(*second)
    assert _check_shard_metadata_pair_overlap(a, b) is common
    assert _check_shard_metadata_pair_overlap(b, a) is common


def test_the_common_part_has_the_same_values():
    whole = torch.arange(48).view(6, 8)

    def part(chunk):
        return whole[tuple(slice(o, o + n) for o, n in zip(chunk.offsets, chunk.sizes))]
    for saved in (piece((0, 0), (3, 8)), piece((2, 3), (4, 2)), piece((5, 7), (1, 1))):
        for wanted in (piece((1, 1), (5, 7)), piece((0, 0), (6, 8))):
            a, b = part(saved), part(wanted)
            for dim, begin, target, length in _shards_get_overlap_region_wrt_saved_tensor(
                    saved, wanted):
                a, b = a.narrow(dim, begin, length), b.narrow(dim, target, length)
            assert a.numel() and torch.equal(a, b)
