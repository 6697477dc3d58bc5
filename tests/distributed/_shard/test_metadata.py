"""Where a piece of a sharded tensor lies in it."""
import pickle

import pytest

import flambeau as torch
from flambeau.distributed._shard.metadata import ShardMetadata


def test_places():
    made = ShardMetadata([2, 0], [2, 4], "rank:1/cpu")
    assert made.placement.rank() == 1 and made.placement.device() == torch.device("cpu")
    assert made == ShardMetadata([2, 0], [2, 4], made.placement)
    assert hash(made) == hash(pickle.loads(pickle.dumps(made)))
    assert made != ShardMetadata([0, 0], [2, 4], "rank:1/cpu")
    assert ShardMetadata([], []).placement is None


@pytest.mark.parametrize(("offsets", "sizes", "message"), [
    ([0], [1, 2], "should have the same number of elements, found 1 and"),
    ([-1], [1], "shard_offsets should be >=0"), ([0], [-1], "shard_sizes should be >= 0")])
def test_what_is_refused(offsets, sizes, message):
    with pytest.raises(ValueError, match=message):
        ShardMetadata(offsets, sizes)
