"""What collectives of a `ProcessGroup` can be told, one class for each."""
from __future__ import annotations

import enum
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NewType

from flambeau._support.c_functions import FieldsInC
from flambeau.distributed._c10d.reduce_op import RedOpType, ReduceOp

GroupName = NewType("GroupName", str)
UNSET = timedelta(milliseconds=-1)              # the group's own timeout


def _sum() -> ReduceOp:
    return ReduceOp(RedOpType.SUM)


@dataclass(eq=False, repr=False)
class BarrierOptions(FieldsInC):
    """How to wait for all processes."""
    device_ids: list[int] = field(default_factory=list)
    timeout: timedelta = UNSET
    device: Any = None
    asyncOp: bool = True


@dataclass(eq=False, repr=False)
class AllToAllOptions(FieldsInC):
    """How to exchange parts."""
    timeout: timedelta = UNSET
    asyncOp: bool = True


@dataclass(eq=False, repr=False)
class AllgatherOptions(FieldsInC):
    """How to gather for all."""
    timeout: timedelta = UNSET
    asyncOp: bool = True


@dataclass(eq=False, repr=False)
class AllreduceOptions(FieldsInC):
    """How to reduce: `reduceOp`."""
    reduceOp: Any = field(default_factory=_sum)
    timeout: timedelta = UNSET
    asyncOp: bool = True


@dataclass(eq=False, repr=False)
class AllreduceCoalescedOptions(AllreduceOptions):
    """How to reduce several tensors."""


@dataclass(eq=False, repr=False)
class ReduceScatterOptions(FieldsInC):
    """How to reduce, and who gets which part."""
    reduceOp: Any = field(default_factory=_sum)
    timeout: timedelta = UNSET
    asyncOp: bool = True


@dataclass(eq=False, repr=False)
class ReduceOptions(FieldsInC):
    """How to reduce, for process `rootRank`."""
    reduceOp: Any = field(default_factory=_sum)
    rootRank: int = 0
    rootTensor: int = 0
    timeout: timedelta = UNSET
    asyncOp: bool = True


@dataclass(eq=False, repr=False)
class BroadcastOptions(FieldsInC):
    """Whose tensors all get: those of process `rootRank`."""
    rootRank: int = 0
    rootTensor: int = 0
    timeout: timedelta = UNSET
    asyncOp: bool = True


@dataclass(eq=False, repr=False)
class GatherOptions(FieldsInC):
    """Who gets all tensors: process `rootRank`."""
    rootRank: int = 0
    timeout: timedelta = UNSET
    asyncOp: bool = True


@dataclass(eq=False, repr=False)
class ScatterOptions(FieldsInC):
    """Who has the parts: process `rootRank`."""
    rootRank: int = 0
    timeout: timedelta = UNSET
    asyncOp: bool = True


class BuiltinCommHookType(enum.IntEnum):
    """Communication hooks that `DistributedDataParallel` knows by name."""
    ALLREDUCE = 1
    FP16_COMPRESS = 2

    def __str__(self) -> str:
        return f"BuiltinCommHookType.{self.name}"


@dataclass
class DistributedBackendOptions:
    """What a backend that is registered with `extended_api=True` is made from."""
    store: Any = None
    group_rank: int = -1
    group_size: int = -1
    timeout: timedelta = UNSET
    group_id: str = ""
    global_ranks_in_group: list[int] = field(default_factory=list)


for _cls in (AllToAllOptions, AllreduceCoalescedOptions, AllreduceOptions, BarrierOptions,
             BroadcastOptions, GatherOptions, ReduceOptions, ReduceScatterOptions, ScatterOptions):
    _cls.__module__ = "torch.distributed.distributed_c10d"
