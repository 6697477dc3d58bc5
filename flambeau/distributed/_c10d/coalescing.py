"""Collectives that are collected first and run together."""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from flambeau import Tensor
from flambeau.distributed._c10d.options import (
    AllgatherOptions,
    AllreduceCoalescedOptions,
    ReduceScatterOptions,
)
from flambeau.distributed._c10d.work import Work
from flambeau.distributed._c10d.world import _world, resolve


class _IllegalWork(Work):
    """Stands for a collective that has been collected: nothing can be asked of it."""

    def __getattribute__(self, name: str) -> Any:
        if name in ("is_success", "exception", "wait", "source_rank", "_source_rank", "result",
                    "synchronize"):
            raise ValueError(f"Illegal to call {name} on IllegalWork object")
        return super().__getattribute__(name)


@dataclass
class _CollOp:
    """A collective that has been collected."""
    op: Callable[..., Any]
    tensor: Tensor
    dst_tensor: Tensor | None = None
    redop: Any = None
    root: int | None = None


class _CoalescingManager:
    """The collectives that were started together."""

    def __init__(self) -> None:
        self.works: list[Work] = []

    def append(self, work: Work | None = None) -> None:
        """Add one."""
        if work:
            self.works.append(work)

    def wait(self) -> None:
        """Wait for all of them."""
        for work in self.works:
            work.wait()


def collect(group: Any, op: _CollOp, async_op: bool) -> Any:
    """Note a collective, if those of the group are collected now; None if they are not."""
    if group not in _world.pg_coalesce_state:
        return None
    _world.pg_coalesce_state[group].append(op)
    return _IllegalWork() if async_op else NO_WORK


NO_WORK = object()                      # collected, and there is nothing to wait for


@contextlib.contextmanager
def _coalescing_manager(group: Any = None, device: Any = None, async_ops: bool = False
                        ) -> Iterator[_CoalescingManager]:
    """Inside, collectives of one kind (`all_reduce`, `all_gather_into_tensor`,
    `reduce_scatter_tensor`) are collected; they run together at the end."""
    from flambeau.distributed._c10d import collectives
    group = resolve(group)
    assert group not in _world.pg_coalesce_state, (
        "ProcessGroup has non-empty op list at the start of coalescing")
    _world.pg_coalesce_state[group] = []
    manager = _CoalescingManager()
    try:
        if device is not None:
            group._start_coalescing(device)
        yield manager
    finally:
        collected = _world.pg_coalesce_state.pop(group)
    if collected:
        first = collected[0].op
        if any(c.op is not first for c in collected):
            raise AssertionError("Coalescing manager does not support mixed collectives: "
                                 + ", ".join(sorted({c.op.__name__ for c in collected})))
        manager.append(_together(collectives, group, first, collected))
    if device is not None:
        manager.append(group._end_coalescing(device))
    if not async_ops:
        manager.wait()


def _together(collectives: Any, group: Any, first: Any, collected: list[_CollOp]) -> Work:
    tensors = [c.tensor for c in collected]
    if first is collectives.all_reduce:
        return group.allreduce_coalesced(tensors, AllreduceCoalescedOptions(collected[0].redop))
    outputs: Any = [c.dst_tensor for c in collected]
    if first is collectives.all_gather_into_tensor:
        return group.allgather_into_tensor_coalesced(outputs, tensors, AllgatherOptions())
    if first is collectives.reduce_scatter_tensor:
        return group.reduce_scatter_tensor_coalesced(
            outputs, tensors, ReduceScatterOptions(collected[0].redop))
    raise AssertionError(f"Coalescing manager does not support fast-path coalescing of {first}, "
                         f"yet {first} is still recorded in op list. This is an internal error.")


@contextlib.contextmanager
def _time_estimator(group: Any = None, device: Any = None) -> Iterator[Any]:
    """Inside, collectives would be timed instead of run; no backend here can do that."""
    backend = resolve(group)._get_backend(device or "cpu")
    if not backend.supports_time_estimate:
        raise NotImplementedError("collective time estimator is not supported in the current "
                                  f"version of backend {backend.name()}")
    yield None


for _cls in (_IllegalWork, _CollOp, _CoalescingManager):
    _cls.__module__ = "torch.distributed.distributed_c10d"
