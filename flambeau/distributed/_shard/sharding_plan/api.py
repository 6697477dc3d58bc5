"""Plans of which parameters of a model are sharded, and how."""
from __future__ import annotations

import abc
from dataclasses import dataclass

from flambeau import nn
from flambeau.distributed._shard.sharder import Sharder
from flambeau.distributed._shard.sharding_spec import ShardingSpec


@dataclass
class ShardingPlan:
    """For names of parameters, or modules, how they are sharded; for names of modules, how their
    outputs are sharded anew, and whose outputs are given as this process's piece."""
    plan: dict[str, ShardingSpec | Sharder]
    output_plan: dict[str, ShardingSpec] | None = None
    return_local_tensor: list[str] | None = None


class ShardingPlanner(abc.ABC):
    """Makes plans."""

    @abc.abstractmethod
    def build_plan(self, module: nn.Module) -> ShardingPlan:
        """A plan for a model."""
