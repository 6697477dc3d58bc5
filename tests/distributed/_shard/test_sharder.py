"""Modules that shard others in a way of their own."""
import pytest

from flambeau import nn
from flambeau.distributed._shard import shard_module
from flambeau.distributed._shard.sharder import Sharder
from flambeau.distributed._shard.sharding_plan import ShardingPlan


class Recorder(Sharder):
    def __init__(self):
        self.seen = []

    def shard(self, module):
        self.seen.append(module)
        return nn.Identity()


def test_a_sharder_is_given_the_module():
    with pytest.raises(TypeError, match="abstract"):
        Sharder()
    model, sharder = nn.Sequential(nn.Linear(2, 2), nn.ReLU()), Recorder()
    first = model[0]
    shard_module(model, ShardingPlan({"0": sharder}))
    assert sharder.seen == [first]
