"""Which parameters of a model are sharded, and how."""
from flambeau.distributed._shard.sharding_plan.api import ShardingPlan, ShardingPlanner
