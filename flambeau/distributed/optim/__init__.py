"""Optimizers for several processes, for a group of one."""
from __future__ import annotations

from flambeau.distributed.optim.post_localSGD_optimizer import PostLocalSGDOptimizer
from flambeau.distributed.optim.zero_redundancy_optimizer import ZeroRedundancyOptimizer

__all__ = ["PostLocalSGDOptimizer", "ZeroRedundancyOptimizer"]
