"""Pieces that become those of another cut."""
import pytest
from shard_cases import about, columns, deprecated, rows, whole

import flambeau as torch
from flambeau import distributed as dist
from flambeau.distributed._shard import sharded_tensor as st
from flambeau.distributed._shard.sharded_tensor import reshard
from flambeau.distributed._shard.sharding_spec import ChunkShardingSpec, EnumerableShardingSpec

pytestmark = deprecated


def test_numbers_of_pieces():
    places = columns(2, 0, 1).placements
    assert [reshard.get_idx_from_placements(places, rank) for rank in range(3)] == [1, 2, 0]
    with pytest.raises(RuntimeError, match="current_rank not in the placement"):
        reshard.get_idx_from_placements(places, 3)


def test_pieces_in_the_order_of_processes():
    metadata, ranks = reshard.build_reshard_metadata(
        torch.Size([5, 2]), ChunkShardingSpec(0, [f"rank:{r}/cpu" for r in (2, 0, 1)]), 3)
    assert ranks == [2, 0, 1]
    assert metadata == [about((2, 0), (2, 2)), about((4, 0), (1, 2), 1), about((0, 0), (2, 2), 2)]


def test_one_process(alone):
    x = st.rand(whole(), 3, 2)
    values = x.local_tensor().clone()
    assert x.reshard(columns(0)) is x and x.sharding_spec() == columns(0)
    assert torch.equal(x.local_tensor(), values)
    listed = EnumerableShardingSpec([about((0, 0), (3, 2))])
    with pytest.raises(NotImplementedError, match="Only ChunkShardingSpec supported for reshard"):
        x.reshard(listed)


def moving(rank):
    values = torch.arange(16.0).view(4, 4)
    left, right, above, below = values[:, :2], values[:, 2:], values[:2], values[2:]
    x = rows().shard(values, process_group=dist.group.WORLD)
    for spec, mine in ((columns(0, 1), (left, right)), (columns(1, 0), (right, left)),
                       (ChunkShardingSpec(0, ["rank:1/cpu", "rank:0/cpu"]), (below, above)),
                       (rows(), (above, below))):
        x.reshard(spec)
        assert x.sharding_spec() == spec
        assert x.local_tensor().tolist() == mine[rank].tolist()
        assert x.local_shards()[0].metadata in x.metadata().shards_metadata


def test_two_processes(processes):
    processes(moving)
