"""The names of `torch._C._distributed_c10d`: process groups, backends, stores, `Reducer`."""
# ruff: noqa: F401   (what is imported here is for others)
from __future__ import annotations

import enum
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from flambeau import Tensor
from flambeau.distributed._c10d import world
from flambeau.distributed._c10d.backends.backend import Backend
from flambeau.distributed._c10d.backends.fake import FakeProcessGroup, FakeWork
from flambeau.distributed._c10d.backends.gloo import ProcessGroupGloo, comm_name
from flambeau.distributed._c10d.backends.wrapper import ProcessGroupWrapper as _ProcessGroupWrapper
from flambeau.distributed._c10d.collectives import broadcast_coalesced as _broadcast_coalesced
from flambeau.distributed._c10d.debug import (
    DebugLevel,
    get_debug_level,
    set_debug_level,
    set_debug_level_from_env,
)
from flambeau.distributed._c10d.options import (
    AllgatherOptions,
    AllreduceCoalescedOptions,
    AllreduceOptions,
    AllToAllOptions,
    BarrierOptions,
    BroadcastOptions,
    BuiltinCommHookType,
    GatherOptions,
    ReduceOptions,
    ReduceScatterOptions,
    ScatterOptions,
)
from flambeau.distributed._c10d.options import (
    DistributedBackendOptions as _DistributedBackendOptions,
)
from flambeau.distributed._c10d.process_group import ProcessGroup
from flambeau.distributed._c10d.reduce_op import RedOpType, ReduceOp
from flambeau.distributed._c10d.reduce_op import make_premul_sum as _make_nccl_premul_sum
from flambeau.distributed._c10d.stores import FileStore, HashStore, PrefixStore, Store, TCPStore
from flambeau.distributed._c10d.stores.collectives import ControlCollectives as _ControlCollectives
from flambeau.distributed._c10d.stores.collectives import StoreCollectives as _StoreCollectives
from flambeau.distributed._c10d.work import OpType, Work, WorkResult
from flambeau.distributed._c10d.world import resolve_name as _resolve_process_group
from flambeau.distributed.constants import _DEFAULT_PG_TIMEOUT
from flambeau.distributed.distributed_c10d import (
    _register_process_group,
    _unregister_all_process_groups,
    _unregister_process_group,
)
from flambeau.futures import Future
from flambeau.nn.parallel.distributed import GradBucket, Logger, Reducer

_DEFAULT_FIRST_BUCKET_BYTES = 1 << 20
_DEFAULT_NO_TIMEOUT = timedelta(0)


class ErrorType(enum.IntEnum):
    """Why a backend has failed."""
    SUCCESS, TIMEOUT, COMM_ERROR, REMOTE_ERROR = range(4)


class PythonCallbackWork(Work):
    """A collective whose `wait` is a function: `callback(timeout)` says whether it is done."""

    def __init__(self, callback: Callable[[timedelta], bool]):
        super().__init__([], done=False)
        self._callback = callback

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Call the function."""
        done = self._callback(timeout or _DEFAULT_NO_TIMEOUT)
        if done and not self.is_completed():
            self._finish(None)
        return done


def _create_work_from_future(future: Future) -> Work:
    """A collective that is done when a future is."""
    work = Work([], done=False)

    def finish(done: Future) -> None:
        try:
            work._tensors = done.value()
        except Exception as error:
            work._finish(error)
        else:
            work._finish(None)
    future.add_done_callback(finish)
    return work


# ---- what shares gradients ----------------------------------------------------------------------

def _compute_bucket_assignment_by_size(tensors: list[Tensor], bucket_size_limits: list[int],
                                       expect_sparse_gradient: Any = (),
                                       tensor_indices: list[int] = [],
                                       logger: Any = None) -> tuple[list[list[int]], list[int]]:
    """Which tensors go together: those of one type, in buckets that reach the limits, of which the
    last holds for all that follow; gives their numbers and the limits."""
    open_buckets: dict[Any, tuple[list[int], int]] = {}
    used: dict[Any, int] = {}
    closed: list[tuple[list[int], int]] = []
    for i, tensor in enumerate(tensors):
        at = tensor_indices[i] if tensor_indices else i
        if i < len(expect_sparse_gradient) and expect_sparse_gradient[i]:
            closed.append(([at], 0))
            continue
        bucket, size = open_buckets.get(tensor.dtype, ([], 0))
        bucket.append(at)
        size += tensor.numel() * tensor.element_size()
        limit = bucket_size_limits[min(used.get(tensor.dtype, 0), len(bucket_size_limits) - 1)]
        if size >= limit:
            closed.append((bucket, limit))
            used[tensor.dtype] = used.get(tensor.dtype, 0) + 1
            open_buckets.pop(tensor.dtype, None)
        else:
            open_buckets[tensor.dtype] = bucket, size
    for dtype, (bucket, _) in open_buckets.items():
        closed.append((bucket, bucket_size_limits[min(used.get(dtype, 0),
                                                      len(bucket_size_limits) - 1)]))
    if not tensor_indices:
        closed.sort(key=lambda entry: min(entry[0]))
    return [b for b, _ in closed], [limit for _, limit in closed]


def _verify_params_across_processes(process_group: Any, params: list[Tensor],
                                    logger: Any = None) -> None:
    """Do all processes have parameters of the same shapes?"""
    from flambeau.distributed._c10d.messages import all_gather_object
    mine = [tuple(p.shape) for p in params]
    found: list[Any] = [None] * process_group.size()
    all_gather_object(found, mine, process_group)
    rank = process_group.rank()
    for other, shapes in enumerate(found):
        if len(shapes) != len(mine):
            raise RuntimeError(
                f"DDP expects same model across all ranks, but Rank {rank} has {len(mine)} params, "
                f"while rank {other} has inconsistent {len(shapes)} params.")
        for i, (theirs, ours) in enumerate(zip(shapes, mine)):
            if theirs != ours:
                raise RuntimeError(
                    f"[{rank}]: params[{i}] in this process with sizes {list(ours)} appears not "
                    f"to match sizes of the same param in process {other}.")


def _register_comm_hook(reducer: Reducer, state: Any, comm_hook: Callable[..., Any]) -> None:
    """Let `comm_hook(state, bucket)` share gradients."""
    reducer.hook = state, comm_hook


def _register_builtin_comm_hook(reducer: Reducer, comm_hook_type: BuiltinCommHookType) -> None:
    """Share gradients in a way that has a name."""
    from flambeau.nn.parallel.distributed import _half_mean, _mean
    hook = {1: _mean, 2: _half_mean}[int(comm_hook_type)]
    reducer.hook = reducer.group, hook


# ---- the group of the moment --------------------------------------------------------------------

def _current_process_group() -> Any:
    """The default group."""
    if world._world.default_pg is None:
        raise RuntimeError("Default process group is not initialized")
    return world._world.default_pg


def _set_process_group(group: Any) -> None:
    """Make a group the default one."""
    world._world.default_pg = group


def _set_global_rank(rank: int) -> None:
    """Names of threads do not show the rank here."""


def _get_comm_profiling_name() -> str:
    """The name under which collectives appear in profiles."""
    return comm_name.get() or ""


def _set_comm_profiling_name(name: str) -> None:
    """Set the name under which collectives appear in profiles."""
    comm_name.set(name or None)


_inflight = False


def _allow_inflight_collective_as_graph_input() -> bool:
    """May compiled code take tensors that a collective still writes?"""
    return _inflight


def _set_allow_inflight_collective_as_graph_input(value: bool) -> None:
    """Set whether compiled code may take tensors that a collective still writes."""
    global _inflight
    _inflight = bool(value)


def _test_python_store(store: Store) -> None:
    """Use each method of a store that is written in Python."""
    store.set("key", "value")
    assert store.get("key") == b"value"
    assert store.add("number", 3) == 3 and store.add("number", -1) == 2
    store.set_timeout(timedelta(seconds=10))
    assert store.check(["key"]) and store.num_keys() == 2
    store.wait(["key"])
    assert store.delete_key("key")
    assert store.compare_set("key", "", "other") == b"other"
