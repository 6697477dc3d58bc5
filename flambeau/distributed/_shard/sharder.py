"""`Sharder`: shards modules in a way of its own."""
from __future__ import annotations

from abc import ABC, abstractmethod

from flambeau import nn


class Sharder(ABC):
    """Gives modules that compute like others and have a share of their parameters."""

    @abstractmethod
    def shard(self, module: nn.Module) -> nn.Module:
        """A sharded module in the place of this one."""
