"""Collectives that are collected first and run together."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from flambeau.distributed._c10d import collectives
from flambeau.distributed._c10d.collectives import _CollOp, _IllegalWork
from flambeau.distributed._c10d.options import (
    AllgatherOptions,
    AllreduceCoalescedOptions,
    ReduceScatterOptions,
)
from flambeau.distributed._c10d.work import Work
from flambeau.distributed._c10d.world import _world, resolve


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


@contextlib.contextmanager
def _coalescing_manager(group: Any = None, device: Any = None, async_ops: bool = False
                        ) -> Iterator[_CoalescingManager]:
    """Inside, collectives of one kind (`all_reduce`, `all_gather_into_tensor`,
    `reduce_scatter_tensor`) are collected; they run together at the end."""
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
        manager.append(_together(group, first, collected))
    if device is not None:
        manager.append(group._end_coalescing(device))
    if not async_ops:
        manager.wait()


def _together(group: Any, first: Any, collected: list[_CollOp]) -> Work:
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
