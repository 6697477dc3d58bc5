"""Distributed training: processes that share what they compute.

`init_process_group("gloo")` makes a group of processes, whose collectives run over TCP;
`nn.parallel.DistributedDataParallel` shares gradients in it, `tensor.DTensor` is one tensor of
which each process has a part.
"""
from __future__ import annotations

import logging
from typing import Any

import flambeau
from flambeau._support.lazy.modules import lazy_modules
from flambeau.distributed._c10d.stores import (
    DistBackendError,
    DistError,
    DistNetworkError,
    DistStoreError,
    FileStore,
    HashStore,
    QueueEmptyError,
    TCPStore,
)
from flambeau.distributed.distributed_c10d import *
from flambeau.distributed.distributed_c10d import (
    _all_gather_base,
    _coalescing_manager,
    _CoalescingManager,
    _create_process_group_wrapper,
    _get_process_group_name,
    _rank_not_in_group,
    _reduce_scatter_base,
    _time_estimator,
    is_available,
    set_debug_level,
    set_debug_level_from_env,
)
from flambeau.distributed.rendezvous import *
from flambeau.distributed.rendezvous import _create_store_from_options

_Work, _DEFAULT_FIRST_BUCKET_BYTES = Work, 1 << 20
RankType = int | flambeau.SymInt
log = logging.getLogger(__name__)
_breakpoint_cache: dict[int, Any] = {}
set_debug_level_from_env()


def breakpoint(rank: int = 0, skip: int = 0, timeout_s: int = 3600) -> None:
    """Stop in the debugger, on one process, while the others wait up to `timeout_s` seconds.
    `skip` times the call does nothing."""
    if skip > 0:
        key = hash(f"breakpoint:{rank}:{skip}")
        _breakpoint_cache[key] = _breakpoint_cache.get(key, 0) + 1
        if _breakpoint_cache[key] <= skip:
            return
    if get_rank() == rank:
        _make_distributed_pdb().set_trace()
    if is_initialized() and get_world_size() > 1:
        from datetime import timedelta
        barrier(timeout=timedelta(seconds=timeout_s))


def _make_distributed_pdb() -> Any:
    """A debugger that reads from the terminal, also in processes whose input is elsewhere."""
    import pdb
    import sys

    class _DistributedPdb(pdb.Pdb):
        def interaction(self, *args: Any, **kwargs: Any) -> None:
            before = sys.stdin
            try:
                with open("/dev/stdin") as sys.stdin:
                    super().interaction(*args, **kwargs)
            finally:
                sys.stdin = before
    return _DistributedPdb()


def _is_spmd_types_available() -> bool:
    return False


_MODULES = lazy_modules(
    "flambeau.distributed", "_composable", "_composable_state", "_functional_collectives",
    "_mesh_layout", "_shard", "_tensor", "algorithms", "argparse_util", "autograd", "c10d_logger",
    "checkpoint", "collective_utils", "config", "constants", "debug", "device_mesh", "elastic",
    "fsdp", "launch", "launcher", "logging_handlers", "nn", "optim", "remote_device", "rpc", "run",
    "tensor", "utils")
_FROM = {
    "DeviceMesh": "device_mesh", "init_device_mesh": "device_mesh",
    "_remote_device": "remote_device",
    **dict.fromkeys((
        "BuiltinCommHookType", "GradBucket", "Logger", "Reducer", "_Backend",
        "_ControlCollectives", "_StoreCollectives", "_broadcast_coalesced",
        "_compute_bucket_assignment_by_size", "_make_nccl_premul_sum",
        "_register_builtin_comm_hook", "_register_comm_hook", "_test_python_store",
        "_verify_params_across_processes"), "_C._distributed_c10d")}


def __getattr__(name: str) -> Any:
    import importlib
    where = _FROM.get(name)
    if where is None:
        return _MODULES(name)
    module = f"flambeau.{where}" if where.startswith("_C") else f"flambeau.distributed.{where}"
    return getattr(importlib.import_module(module), name.replace("_Backend", "Backend"))
