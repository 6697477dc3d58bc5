"""Schedules: the order in which the ranks of a pipeline compute, send and receive microbatches.

`ScheduleGPipe` and `Schedule1F1B` are for one stage a rank; the others for several.
"""
from __future__ import annotations

import json
from typing import Any

from flambeau._support.own_methods import adopt

from ...fsdp import FSDPModule, UnshardHandle
from .._utils import generate_rank_to_stage_mapping, generate_stage_to_rank_mapping
from ..microbatch import TensorChunkSpec, _split_tensor, merge_chunks, split_args_kwargs_into_chunks
from ..stage.base import _PipelineStageBase, _RecvInfo
from ..stage.manual import PipelineStage
from .actions import (
    BACKWARD_INPUT,
    BACKWARD_WEIGHT,
    FORWARD,
    FULL_BACKWARD,
    OVERLAP_F_B,
    RECV_B,
    RECV_F,
    REDUCE_GRAD,
    RESHARD,
    SEND_B,
    SEND_F,
    UNSHARD,
    B,
    F,
    I,
    W,
    _Action,
    _ComputationType,
    _format_pipeline_order,
    _get_profiler_function_name,
    _requires_reduce_grad,
)
from .base import _PipelineSchedule, logger
from .interleaved import (
    ScheduleDualPipeV,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
    ScheduleLoopedBFS,
    ScheduleZBVZeroBubble,
)
from .lowering import (
    _add_reduce_grad,
    _add_send_recv,
    _add_unshard_reshard,
    _defer_recv_ops,
    _merge_bw,
    _simulate_comms_compute,
    _validate_schedule,
)
from .messages import _batch_p2p, _sorted_batch_p2p, _wait_batch_p2p
from .multi import (
    PipelineScheduleMulti,
    _CustomFunctionProtocol,
    _PipelineContext,
    _PipelineScheduleRuntime,
)
from .orders import _get_1f1b_rank_ops, _get_warmup_ops
from .single import PipelineScheduleSingle, Schedule1F1B, ScheduleGPipe, _ScheduleForwardOnly

__all__ = ["PipelineScheduleMulti", "PipelineScheduleSingle", "Schedule1F1B", "ScheduleDualPipeV",
           "ScheduleGPipe", "ScheduleInterleaved1F1B", "ScheduleInterleavedZeroBubble",
           "ScheduleLoopedBFS", "ScheduleZBVZeroBubble", "get_schedule_class"]

_BY_NAME = {
    "1F1B": Schedule1F1B,
    "Interleaved1F1B": ScheduleInterleaved1F1B,
    "GPipe": ScheduleGPipe,
    "LoopedBFS": ScheduleLoopedBFS,
    "InterleavedZeroBubble": ScheduleInterleavedZeroBubble,
    "PipelineScheduleSingle": PipelineScheduleSingle,
    "PipelineScheduleMulti": PipelineScheduleMulti,
    "ZBVZeroBubble": ScheduleZBVZeroBubble,
    "DualPipeV": ScheduleDualPipeV,
}


def get_schedule_class(schedule_name: str) -> type[_PipelineSchedule]:
    """The class of a schedule by its name, in upper or lower case.

    >>> from flambeau.distributed.pipelining.schedules import get_schedule_class
    >>> get_schedule_class("gpipe").__name__
    'ScheduleGPipe'
    """
    for name, schedule in _BY_NAME.items():
        if name.lower() == schedule_name.lower():
            return schedule  # type: ignore[return-value]
    raise ValueError(f"Unknown schedule name '{schedule_name}'. The valid options are "
                     f"{list(_BY_NAME)}")


def _dump_chrometrace(schedule: dict[int, list[_Action | None]], filename: str) -> None:
    """Write steps, as `_simulate` gives them, for the viewer of chrome://tracing."""
    events: list[dict[str, Any]] = [
        {"name": str(action), "cat": "computation" if action.is_compute_op else "communication",
         "ph": "X", "pid": rank, "tid": rank, "ts": step, "dur": 1}
        for rank in sorted(schedule) for step, action in enumerate(schedule[rank])
        if action is not None]
    with open(filename, "w") as file:
        json.dump({"traceEvents": events}, file)


def _check_torch_compile_compatibility(stages: list[Any], schedule_name: str) -> None:
    """Schedules that split the backward need modules that are not compiled; none is here."""

adopt(globals(), "distributed.pipelining.schedules.")
