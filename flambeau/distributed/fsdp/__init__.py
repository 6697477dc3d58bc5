"""Fully sharded data parallelism, for a group of one."""
from __future__ import annotations

from flambeau.distributed.fsdp._fully_shard import (
    CPUOffloadPolicy,
    FSDPModule,
    MixedPrecisionPolicy,
    OffloadPolicy,
    fully_shard,
    register_fsdp_forward_method,
)
from flambeau.distributed.fsdp.fully_sharded_data_parallel import (
    FullyShardedDataParallel,
    ShardingStrategy,
)

__all__ = ["CPUOffloadPolicy", "FSDPModule", "FullyShardedDataParallel", "MixedPrecisionPolicy",
           "OffloadPolicy", "ShardingStrategy", "fully_shard", "register_fsdp_forward_method"]
