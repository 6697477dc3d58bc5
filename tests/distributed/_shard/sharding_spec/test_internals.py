"""Do pieces cover a tensor, each part of it once?"""
import pytest

import flambeau as torch
from flambeau.distributed._shard.metadata import ShardMetadata
from flambeau.distributed._shard.sharding_spec import ChunkShardingSpec, _internals


def pieces(*cuts):
    return [ShardMetadata(list(offsets), list(sizes)) for offsets, sizes in cuts]


@pytest.mark.parametrize(("cuts", "overlap"), [
    ([((0,), (2,)), ((2,), (2,))], False), ([((0,), (3,)), ((2,), (2,))], True),
    ([((0, 0), (2, 2)), ((0, 2), (2, 2)), ((2, 0), (2, 4))], False),
    ([((0, 0), (3, 2)), ((0, 2), (2, 2)), ((2, 1), (2, 3))], True),
    ([((0, 0), (2, 2)), ((0, 0), (2, 2))], True), ([((0,), (5,))], False), ([], False)])
def test_pieces_have_nothing_in_common(cuts, overlap):
    made = pieces(*cuts)
    if overlap:
        with pytest.raises(ValueError, match=r"Shards .* and .* overlap"):
            _internals.validate_non_overlapping_shards_metadata(made)
    else:
        _internals.validate_non_overlapping_shards_metadata(made)


@pytest.mark.parametrize(("cuts", "shape", "message"), [
    ([((0,), (2,)), ((2,), (2,))], (5,), "Total volume of shards: 4 does not match tensor volume: "
                                         "5"),
    ([((0,), (2,)), ((2,), (4,))], (5,), "Shard offset 2 and length 4 exceeds tensor dim: 5"),
    ([((0,), (2,))], (2, 2), "Rank of tensor is 2, but shards rank is 1")])
def test_pieces_that_do_not_cover_a_tensor(cuts, shape, message):
    with pytest.raises(ValueError, match=message):
        _internals.check_tensor(pieces(*cuts), torch.Size(shape))
    _internals.check_tensor(pieces(((0, 0), (2, 1)), ((0, 1), (2, 2))), torch.Size((2, 3)))


@pytest.mark.parametrize(("size", "parts"), [(10, 4), (3, 4), (8, 2), (0, 3), (7, 7)])
def test_sizes_are_those_of_chunk(size, parts):
    split = _internals.get_split_size(size, parts)
    sizes = [_internals.get_chunked_dim_size(size, split, i) for i in range(parts)]
    assert sum(sizes) == size
    assert [s for s in sizes if s] == [len(c) for c in torch.arange(size).chunk(parts) if len(c)]
    spec = ChunkShardingSpec(0, [f"rank:{r}/cpu" for r in reversed(range(parts))])
    for rank in range(parts):
        place = parts - 1 - rank                        # the placements are in reverse
        assert _internals.get_chunk_sharding_params(size, parts, spec, rank) == (
            min(split * place, size), sizes[place])
