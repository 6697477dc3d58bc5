"""Pictures of schedules: what each rank does at each step, without running anything."""
from __future__ import annotations

import collections
from typing import Any, NamedTuple

from .schedules import (
    PipelineScheduleSingle,
    _PipelineSchedule,
    _PipelineScheduleRuntime,
    get_schedule_class,
)
from .schedules.actions import (
    BACKWARD_INPUT,
    BACKWARD_WEIGHT,
    FORWARD,
    FULL_BACKWARD,
    OVERLAP_F_B,
    _Action,
    _ComputationType,
    parts_of,
)
from .stage.base import _PipelineStageBase

Steps = list[list[_Action | None]]


class OpKey(NamedTuple):
    stage_index: int
    computation_type: _ComputationType
    microbatch_index: int


class _ComputationTypeVisual:
    """How a kind of action is drawn; `width` is how many steps it takes."""

    def __init__(self, color: str, text: str = "", width: int = 1):
        self.color = color
        self.text = text
        self.width = width


action_type_to_color_mapping = {
    FORWARD: _ComputationTypeVisual("blue", "Forward"),
    BACKWARD_INPUT: _ComputationTypeVisual("teal", "Backward Input"),
    BACKWARD_WEIGHT: _ComputationTypeVisual("green", "Backward Weight"),
    FULL_BACKWARD: _ComputationTypeVisual("orange", "Full Backward", 2),
    OVERLAP_F_B: _ComputationTypeVisual("purple", "Overlap F+B", 3),
}


class _StageOutline(_PipelineStageBase):
    """A stage that has a place in a pipeline, and nothing to compute."""

    def __init__(self, stage_index: int, num_stages: int, rank: int, ranks: int):
        self.stage_index, self.num_stages = stage_index, num_stages
        self.group_rank, self.group_size = rank, ranks
        self.submod = None
        self._has_backward = False

    def _prepare_forward_infra(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("this stage is for pictures of schedules only")

    _prepare_backward_infra = _create_grad_recv_info = _prepare_forward_infra


def get_schedule_ops(schedule: str | type[_PipelineSchedule], pp_degree: int,
                     num_microbatches: int, num_stages_per_rank: int | None = None,
                     add_spacing: bool = False, with_comms: bool = False,
                     defer_pp_recv: bool = False) -> Steps:
    """What each of `pp_degree` ranks does, in order.

    `add_spacing` puts a None where a rank waits; `with_comms` shows communication.

    >>> from flambeau.distributed.pipelining._schedule_visualizer import get_schedule_ops
    >>> get_schedule_ops("GPipe", pp_degree=2, num_microbatches=2)[1]
    [1F0, 1F1, 1B0, 1B1, 1REDUCE_GRAD]
    """
    if add_spacing and with_comms:
        raise ValueError("Cannot add spacing and view comms at the same time")
    kind: Any = get_schedule_class(schedule) if isinstance(schedule, str) else schedule
    if not issubclass(kind, _PipelineSchedule):
        raise ValueError(f"Invalid schedule: {schedule}")
    if issubclass(kind, PipelineScheduleSingle):
        if num_stages_per_rank not in (None, 1):
            raise AssertionError(
                f"Expected num_stages_per_rank to be 1, got {num_stages_per_rank}")
        made = kind(_StageOutline(0, pp_degree, 0, pp_degree), num_microbatches)
    else:
        per_rank = 2 if num_stages_per_rank is None else num_stages_per_rank
        if per_rank < 2:
            raise AssertionError(f"Expected num_stages_per_rank >= 2, got {per_rank}")
        count = pp_degree * per_rank
        options = {"defer_pp_recv": True} if defer_pp_recv and issubclass(
            kind, _PipelineScheduleRuntime) else {}
        made = kind([_StageOutline(place * pp_degree, count, 0, pp_degree)
                     for place in range(per_rank)], num_microbatches, **options)
    orders = made.pipeline_order_with_comms if with_comms else made.pipeline_order
    steps = [orders[rank] for rank in range(pp_degree)]
    if not with_comms and issubclass(kind, PipelineScheduleSingle):
        steps = [[action for action in order if action is not None] for order in steps]
    if not add_spacing:
        return steps
    return add_schedule_op_spacing([
        [action for action in order if action is None or action.is_compute_op] for order in steps])


def _dependencies(action: _Action, num_stages: int) -> list[OpKey]:
    """The actions of which one has to be done before."""
    stage, kind, microbatch, _ = action
    backwards = (FULL_BACKWARD, BACKWARD_INPUT)
    if kind == FORWARD:
        return [OpKey(stage - 1, FORWARD, microbatch)] if stage > 0 else []
    if kind in backwards:
        if stage == num_stages - 1:
            return [OpKey(stage, FORWARD, microbatch)]
        return [OpKey(stage + 1, before, microbatch) for before in backwards]
    if kind == BACKWARD_WEIGHT:
        return [OpKey(stage, BACKWARD_INPUT, microbatch)]
    raise RuntimeError(f"Unknown computation type: {kind}")


def add_schedule_op_spacing(schedule: Steps) -> Steps:
    """The same actions with a None for each step in which a rank waits for another; an action is
    one entry, however many steps it takes."""
    waiting = [collections.deque(action for action in actions if action is not None)
               for actions in schedule]
    num_stages = 1 + max((part.stage_index for actions in waiting for action in actions
                          for part in parts_of(action)), default=-1)
    result: Steps = [[] for _ in schedule]
    free_at = [0] * len(schedule)           # when each rank has done its action
    done_at: dict[OpKey, int] = {}

    def ready(action: _Action, step: int) -> bool:
        for part in parts_of(action):
            needed = _dependencies(part, num_stages)
            if needed and not any(done_at.get(key, step + 1) <= step for key in needed):
                return False
        return True

    step = 0
    while any(waiting):
        for rank, actions in enumerate(waiting):
            if step < free_at[rank]:
                continue
            if not actions or not ready(actions[0], step):
                result[rank].append(None)
                continue
            action = actions.popleft()
            result[rank].append(action)
            free_at[rank] = step + action_type_to_color_mapping[action.computation_type].width
            for part in parts_of(action):
                done_at[OpKey(*part[:3])] = free_at[rank]
        step += 1
        if step > max(free_at) + 1 and any(waiting):
            raise RuntimeError("No progress made in scheduling - possible deadlock")
    return result


def visualize_schedule(schedule: Steps, filename: str | None = None) -> None:
    """Draw a schedule with Matplotlib: into a file, or on the screen."""
    import matplotlib.pyplot as plt
    from matplotlib.patches import Patch, Rectangle

    lengths = [sum(_width(action) for action in actions) for actions in schedule]
    figure, axes = plt.subplots(figsize=(max(8, max(lengths, default=0) / 2), len(schedule) + 1))
    used = []
    for rank, actions in enumerate(schedule):
        start = 0
        for action in actions:
            width = _width(action)
            if action is not None:
                visual = _visual(action)
                used += [] if visual in used else [visual]
                axes.add_patch(Rectangle((start, -rank), width, 1, facecolor=visual.color,
                                         edgecolor="black"))
                axes.text(start + width / 2, 0.5 - rank, str(action), ha="center", va="center",
                          color="white", fontsize=7)
            start += width
    axes.set_xlim(0, max(lengths, default=1))
    axes.set_ylim(1 - len(schedule), 1)
    axes.set_yticks([0.5 - rank for rank in range(len(schedule))],
                    [f"Rank {rank}" for rank in range(len(schedule))])
    axes.set_xlabel("Step")
    axes.legend(handles=[Patch(facecolor=visual.color, label=visual.text) for visual in used],
                loc="upper center", bbox_to_anchor=(0.5, -0.25), ncols=max(1, len(used)))
    figure.tight_layout()
    if filename is None:
        plt.show()
    else:
        figure.savefig(filename)
    plt.close(figure)


def _visual(action: _Action) -> _ComputationTypeVisual:
    return action_type_to_color_mapping.get(
        action.computation_type,
        _ComputationTypeVisual("gray", action.computation_type.value))


def _width(action: _Action | None) -> int:
    return 1 if action is None else _visual(action).width
