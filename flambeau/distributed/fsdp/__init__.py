"""Fully sharded data parallelism: each process keeps a share of parameters and states."""
from __future__ import annotations

from flambeau._support.own_methods import adopt
from flambeau.distributed.fsdp._flat_param import FlatParameter
from flambeau.distributed.fsdp._fully_shard import *
from flambeau.distributed.fsdp.api import *
from flambeau.distributed.fsdp.fully_sharded_data_parallel import *

__all__ = [
    "BackwardPrefetch", "CPUOffload", "CPUOffloadPolicy", "DataParallelMeshDims", "FSDPModule",
    "FullOptimStateDictConfig", "FullStateDictConfig", "FullyShardedDataParallel",
    "LocalOptimStateDictConfig", "LocalStateDictConfig", "MixedPrecision", "MixedPrecisionPolicy",
    "OffloadPolicy", "OptimStateDictConfig", "OptimStateKeyType", "ShardedOptimStateDictConfig",
    "ShardedStateDictConfig", "ShardingStrategy", "StateDictConfig", "StateDictSettings",
    "StateDictType", "UnshardHandle", "fully_shard", "register_fsdp_forward_method",
    "share_comm_ctx"]

adopt(globals(), "distributed.fsdp._fully_shard")
