"""`FullyShardedDataParallel`, for a group of one."""
from __future__ import annotations

from flambeau.distributed.fsdp.fully_sharded_data_parallel import (
    FullyShardedDataParallel,
    ShardingStrategy,
)

__all__ = ["FullyShardedDataParallel", "ShardingStrategy"]
