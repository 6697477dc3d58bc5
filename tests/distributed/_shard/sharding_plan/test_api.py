"""Plans of which parameters of a model are sharded, and how."""
import pytest
from shard_cases import rows

from flambeau import nn
from flambeau.distributed._shard.sharding_plan import ShardingPlan, ShardingPlanner


class EveryWeight(ShardingPlanner):
    def build_plan(self, module):
        return ShardingPlan({name: rows() for name, p in module.named_parameters() if p.ndim > 1})


def test_plans():
    plan = ShardingPlan({"a": rows()})
    assert plan.output_plan is None and plan.return_local_tensor is None
    assert plan == ShardingPlan({"a": rows()}, None, None)
    assert plan != ShardingPlan({"a": rows()}, return_local_tensor=["a"])
    made = EveryWeight().build_plan(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2, bias=False)))
    assert made.plan == {"0.weight": rows(), "1.weight": rows()}
    with pytest.raises(TypeError, match="build_plan"):
        ShardingPlanner()
