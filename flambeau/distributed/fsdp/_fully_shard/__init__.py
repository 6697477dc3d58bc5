"""`fully_shard`: modules that keep their class and names, and are sharded in place."""
from __future__ import annotations

from flambeau.distributed.fsdp._fully_shard._fsdp_api import (
    CPUOffloadPolicy,
    DataParallelMeshDims,
    MixedPrecisionPolicy,
    OffloadPolicy,
)
from flambeau.distributed.fsdp._fully_shard._fully_shard import (
    FSDPModule,
    UnshardHandle,
    fully_shard,
    register_fsdp_forward_method,
    share_comm_ctx,
)

__all__ = ["CPUOffloadPolicy", "DataParallelMeshDims", "FSDPModule", "MixedPrecisionPolicy",
           "OffloadPolicy", "UnshardHandle", "fully_shard", "register_fsdp_forward_method",
           "share_comm_ctx"]
