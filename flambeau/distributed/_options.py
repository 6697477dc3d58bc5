"""What collectives of a `ProcessGroup` can be told, one class for each."""
from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NewType

from flambeau.distributed._groups import RedOpType, ReduceOp
from flambeau.distributed._process_group import comm_name

GroupName = NewType("GroupName", str)
_UNSET = timedelta(milliseconds=-1000)          # the group's own timeout


def _sum() -> ReduceOp:
    return ReduceOp(RedOpType.SUM)


@dataclass(eq=False, repr=False)
class BarrierOptions:
    """How to wait for all processes."""
    asyncOp: bool = True
    timeout: timedelta = _UNSET
    device: Any = None
    device_ids: list[int] = field(default_factory=list)


@dataclass(eq=False, repr=False)
class AllToAllOptions:
    """How to exchange parts."""
    asyncOp: bool = True
    timeout: timedelta = _UNSET


@dataclass(eq=False, repr=False)
class AllreduceOptions:
    """How to reduce: `reduceOp`."""
    reduceOp: Any = field(default_factory=_sum)
    asyncOp: bool = True
    timeout: timedelta = _UNSET


@dataclass(eq=False, repr=False)
class AllreduceCoalescedOptions(AllreduceOptions):
    """How to reduce several tensors."""


@dataclass(eq=False, repr=False)
class ReduceScatterOptions(AllreduceOptions):
    """How to reduce, and who gets which part."""


@dataclass(eq=False, repr=False)
class ReduceOptions(AllreduceOptions):
    """How to reduce, for process `rootRank`."""
    rootRank: int = 0
    rootTensor: int = 0


@dataclass(eq=False, repr=False)
class BroadcastOptions:
    """Whose tensors all get: those of process `rootRank`."""
    rootRank: int = 0
    rootTensor: int = 0
    asyncOp: bool = True
    timeout: timedelta = _UNSET


@dataclass(eq=False, repr=False)
class GatherOptions:
    """Who gets all tensors: process `rootRank`."""
    rootRank: int = 0
    asyncOp: bool = True
    timeout: timedelta = _UNSET


@dataclass(eq=False, repr=False)
class ScatterOptions:
    """Who has the parts: process `rootRank`."""
    rootRank: int = 0
    asyncOp: bool = True
    timeout: timedelta = _UNSET


class BuiltinCommHookType(enum.IntEnum):
    """Communication hooks that `DistributedDataParallel` knows by name."""
    ALLREDUCE = 1
    FP16_COMPRESS = 2

    def __str__(self) -> str:
        return f"BuiltinCommHookType.{self.name}"


@contextlib.contextmanager
def record_comm(name: str) -> Iterator[None]:
    """Inside, collectives appear in profiles under this name.

    >>> from flambeau import distributed as dist
    >>> import flambeau
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> with flambeau.profiler.profile() as profile, record_comm("gradients"):
    ...     dist.all_reduce(flambeau.ones(2))
    >>> "gradients" in [event.key for event in profile.key_averages()]
    True
    >>> dist.destroy_process_group()
    """
    token = comm_name.set(name)
    try:
        yield
    finally:
        comm_name.reset(token)


for _cls in (AllToAllOptions, AllreduceCoalescedOptions, AllreduceOptions, BarrierOptions,
             BroadcastOptions, GatherOptions, ReduceOptions, ReduceScatterOptions, ScatterOptions):
    _cls.__module__ = "torch.distributed.distributed_c10d"
__all__ = ["AllToAllOptions", "AllreduceCoalescedOptions", "AllreduceOptions", "BarrierOptions",
           "BroadcastOptions", "BuiltinCommHookType", "GatherOptions", "GroupName",
           "ReduceOptions", "ReduceScatterOptions", "ScatterOptions", "record_comm"]
