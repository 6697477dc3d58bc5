"""Distributed training: processes that share what they compute.

`init_process_group("gloo")` makes a group of processes, whose collectives run over TCP;
`nn.parallel.DistributedDataParallel` shares gradients in it. What cuts models into pieces
(`fully_shard`, `DTensor`, `ZeroRedundancyOptimizer`) is there for one process only.
"""
from __future__ import annotations

import enum
import os
from typing import Any

from flambeau.distributed._options import (
    AllreduceCoalescedOptions,
    AllreduceOptions,
    AllToAllOptions,
    BarrierOptions,
    BroadcastOptions,
    BuiltinCommHookType,
    GatherOptions,
    GroupName,
    ReduceOptions,
    ReduceScatterOptions,
    ScatterOptions,
    record_comm,
)
from flambeau.distributed.distributed_c10d import (
    Backend,
    BackendConfig,
    GroupMember,
    P2POp,
    ProcessGroup,
    ProcessGroupGloo,
    ReduceOp,
    Work,
    all_gather,
    all_gather_coalesced,
    all_gather_into_tensor,
    all_gather_object,
    all_gather_single,
    all_reduce,
    all_reduce_coalesced,
    all_to_all,
    all_to_all_single,
    barrier,
    batch_isend_irecv,
    broadcast,
    broadcast_object_list,
    default_pg_timeout,
    destroy_process_group,
    gather,
    gather_object,
    get_backend,
    get_backend_config,
    get_default_backend_for_device,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_pg_count,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    irecv,
    is_available,
    is_backend_available,
    is_gloo_available,
    is_initialized,
    is_mpi_available,
    is_nccl_available,
    is_torchelastic_launched,
    is_ucc_available,
    is_xccl_available,
    isend,
    monitored_barrier,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
    recv,
    recv_object_list,
    reduce,
    reduce_op,
    reduce_scatter,
    reduce_scatter_single,
    reduce_scatter_tensor,
    scatter,
    scatter_object_list,
    send,
    send_object_list,
    shrink_group,
    split_group,
    supports_complex,
)
from flambeau.distributed.rendezvous import register_rendezvous_handler, rendezvous
from flambeau.distributed.stores import (
    DistBackendError,
    DistError,
    DistNetworkError,
    DistStoreError,
    FileStore,
    HashStore,
    PrefixStore,
    QueueEmptyError,
    Store,
    TCPStore,
)


class DebugLevel(enum.IntEnum):
    """How much distributed code checks and logs."""
    OFF, INFO, DETAIL = range(3)


_debug_level = DebugLevel.OFF


def get_debug_level() -> DebugLevel:
    """How much distributed code checks and logs."""
    return _debug_level


def set_debug_level(level: DebugLevel) -> None:
    """Set how much distributed code checks and logs."""
    global _debug_level
    _debug_level = DebugLevel(level)


def set_debug_level_from_env() -> None:
    """Set it to what `TORCH_DISTRIBUTED_DEBUG` says."""
    name = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    if name not in DebugLevel.__members__:
        raise RuntimeError("The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or DETAIL.")
    set_debug_level(DebugLevel[name])


set_debug_level_from_env()


def breakpoint(rank: int = 0, skip: int = 0, timeout_s: int = 3600) -> None:
    """Stop in the debugger, on one process."""
    if get_rank() == rank:
        import pdb
        pdb.set_trace()


def __getattr__(name: str) -> Any:
    import importlib
    if name in ("algorithms", "checkpoint", "device_mesh", "elastic", "fsdp", "optim", "rpc",
                "tensor"):
        return importlib.import_module(f"flambeau.distributed.{name}")
    if name in ("DeviceMesh", "init_device_mesh"):
        return getattr(importlib.import_module("flambeau.distributed.device_mesh"), name)
    if name in ("GradBucket", "Logger", "Reducer"):
        return getattr(importlib.import_module("flambeau.nn.parallel.distributed"), name)
    raise AttributeError(f"module 'flambeau.distributed' has no attribute {name!r}")
