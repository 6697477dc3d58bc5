"""NCCL, which joins CUDA devices: there are none."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flambeau._support.devices.absent import refusal, settle
from flambeau.cuda import MESSAGE

SUM = 0


def is_available(tensors: Sequence[Any]) -> bool:
    """False: tensors are in main memory."""
    return False


version, unique_id, init_rank, all_reduce, reduce, broadcast, all_gather, reduce_scatter = (
    refusal(name, AssertionError, MESSAGE) for name in (
        "version", "unique_id", "init_rank", "all_reduce", "reduce", "broadcast", "all_gather",
        "reduce_scatter"))


settle(globals())
__all__ = ["all_gather", "all_reduce", "broadcast", "reduce", "reduce_scatter"]
