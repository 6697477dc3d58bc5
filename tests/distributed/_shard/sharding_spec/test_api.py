"""How a tensor is cut into pieces, and where they are."""
import pytest
from shard_cases import about, deprecated, rows, whole

import flambeau as torch
from flambeau.distributed._shard import sharded_tensor as st
from flambeau.distributed._shard.sharded_tensor.metadata import TensorProperties
from flambeau.distributed._shard.sharding_spec import (
    ChunkShardingSpec,
    DevicePlacementSpec,
    EnumerableShardingSpec,
    ShardingSpec,
    api,
)

GRID = [about((r, c), (2, 2)) for r in (0, 2) for c in (0, 2)]


def test_devices_are_parsed():
    assert DevicePlacementSpec("rank:1/cpu").device.rank() == 1
    assert DevicePlacementSpec("cpu") == DevicePlacementSpec("cpu") != DevicePlacementSpec("meta")
    with pytest.raises(ValueError, match="Could not parse remote_device"):
        DevicePlacementSpec("a/b/c")


def test_pieces_one_by_one():
    spec = EnumerableShardingSpec(GRID)
    made = spec.build_metadata(torch.Size([4, 4]), TensorProperties())
    assert made.shards_metadata == GRID and made.size == (4, 4)
    with pytest.raises(ValueError, match="Total volume of shards: 16 does not match tensor volume"):
        spec.build_metadata(torch.Size([4, 5]), TensorProperties())
    with pytest.raises(NotImplementedError, match=r"EnumerableShardingSpec.shard not implemented"):
        spec.shard(torch.ones(4, 4))
    with pytest.raises(TypeError, match="abstract"):
        ShardingSpec()


@pytest.mark.parametrize(("pieces", "message"), [
    ([], "Empty shard list provided"), ([about((0,), (2,)), about((1,), (2,))], "overlap"),
    ([about((0,), (2,)), about((1, 0), (2, 1))], "Found inconsistent ranks for shards: 1 and 2")])
def test_pieces_that_are_refused(pieces, message):
    with pytest.raises(ValueError, match=message):
        EnumerableShardingSpec(pieces)


@pytest.mark.parametrize(("pieces", "dim", "ranks"), [
    ([about((0, 0), (2, 2)), about((2, 0), (1, 2), 1)], 0, (0, 1)),
    ([about((2, 0), (2, 2)), about((4, 0), (1, 2), 1), about((0, 0), (2, 2), 2)], 0, (2, 0, 1)),
    ([about((0, 0), (2, 3), 1), about((0, 3), (2, 3))], 1, (1, 0))])
def test_equal_pieces_are_recognized(pieces, dim, ranks):
    assert api._infer_sharding_spec_from_shards_metadata(pieces) == ChunkShardingSpec(
        dim, [f"rank:{rank}/cpu" for rank in ranks])


@pytest.mark.parametrize("pieces", [
    [about((0, 0), (1, 2)), about((1, 0), (2, 2), 1)], GRID, [about((0,), (2,))]])
def test_other_pieces_are_listed(pieces):
    assert api._infer_sharding_spec_from_shards_metadata(pieces) == EnumerableShardingSpec(pieces)


class Mine(ChunkShardingSpec):
    """A class of its own, with ops of its own."""


@deprecated
def test_ops_of_a_cut(alone):
    @api.custom_sharding_spec_op(Mine, torch.sum)
    def total(types, args, kwargs, process_group):
        return args[0].local_tensor().sum()
    spec = Mine(0, ["rank:0/cpu"])
    assert api._has_custom_op(spec, torch.sum) and not api._has_custom_op(whole(), torch.sum)
    assert torch.sum(st.ones(spec, 3)) == 3
    with pytest.raises(RuntimeError, match="not supported for ShardedTensor"):
        torch.sum(st.ones(whole(), 3))
    with pytest.raises(RuntimeError, match="not registered for ChunkShardingSpec"):
        api._dispatch_custom_op(rows(), torch.sum, (), (), {}, None)
