"""The actions of a schedule: what a rank does at a step, and how it is written.

An action is written as stage, kind and microbatch: `2F0` is the forward of stage 2 on microbatch 0,
`1SEND_B3` sends the gradient of microbatch 3 from stage 1 to the stage before it.
"""
from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple


class _ComputationType(str, Enum):         # noqa: UP042 (StrEnum prints its values)
    """What an action does."""

    FORWARD = "F"
    BACKWARD_INPUT = "I"
    BACKWARD_WEIGHT = "W"
    UNSHARD = "UNSHARD"
    RESHARD = "RESHARD"
    SEND_F = "SEND_F"
    RECV_F = "RECV_F"
    SEND_B = "SEND_B"
    RECV_B = "RECV_B"
    FULL_BACKWARD = "B"
    OVERLAP_F_B = "OVERLAP_F_B"
    REDUCE_GRAD = "REDUCE_GRAD"

    __str__ = Enum.__str__
    __format__ = Enum.__format__

    @staticmethod
    def from_str(action: str) -> _ComputationType:
        for kind in _ComputationType:
            if action == kind.value:
                return kind
        raise RuntimeError(f"Invalid computation type {action}")


FORWARD = F = _ComputationType.FORWARD
BACKWARD_INPUT = I = _ComputationType.BACKWARD_INPUT
BACKWARD_WEIGHT = W = _ComputationType.BACKWARD_WEIGHT
UNSHARD = _ComputationType.UNSHARD
RESHARD = _ComputationType.RESHARD
SEND_F = _ComputationType.SEND_F
RECV_F = _ComputationType.RECV_F
SEND_B = _ComputationType.SEND_B
RECV_B = _ComputationType.RECV_B
FULL_BACKWARD = B = _ComputationType.FULL_BACKWARD
OVERLAP_F_B = _ComputationType.OVERLAP_F_B
REDUCE_GRAD = _ComputationType.REDUCE_GRAD

_COMPUTE = {F, I, W, B, OVERLAP_F_B}
_ACTION = re.compile(
    r"(\d+)(F|I|B|W|UNSHARD|RESHARD|REDUCE_GRAD|SEND_F|RECV_F|SEND_B|RECV_B)(\d*)")
_OVERLAPPED = re.compile(r"\((.*)\)OVERLAP_F_B")


class _Action(NamedTuple):
    """One step of a rank: a stage, what to do, and for which microbatch.

    >>> from flambeau.distributed.pipelining.schedules import _Action
    >>> action = _Action.from_str("2F0")
    >>> action.stage_index, action.computation_type.name, action.microbatch_index
    (2, 'FORWARD', 0)
    """

    stage_index: int
    computation_type: _ComputationType
    microbatch_index: int | None = None
    sub_actions: tuple[_Action, ...] | None = None

    def __str__(self) -> str:
        return repr(self)

    def __repr__(self) -> str:
        if self.sub_actions is not None:
            return f"({';'.join(map(repr, self.sub_actions))}){self.computation_type.value}"
        microbatch = "" if self.microbatch_index is None else self.microbatch_index
        return f"{self.stage_index}{self.computation_type.value}{microbatch}"

    @property
    def is_compute_op(self) -> bool:
        return self.computation_type in _COMPUTE

    @staticmethod
    def from_str(action_string: str) -> _Action | None:
        """The action that a cell of a schedule's file says; None for an empty cell."""
        text = action_string.strip()
        if not text:
            return None
        if overlapped := _OVERLAPPED.fullmatch(text):
            parts = tuple(_Action.from_str(part) for part in overlapped[1].split(";"))
            if all(part is not None for part in parts):
                return _Action(-1, OVERLAP_F_B, None, parts)
        elif match := _ACTION.fullmatch(text):
            stage, kind, microbatch = match.groups()
            return _Action(int(stage), _ComputationType(kind),
                           int(microbatch) if microbatch else None)
        raise RuntimeError(f"Invalid action string: {action_string}, should be formatted as "
                           "[stage][action type][(microbatch)] e.g. 2F0")


def parts_of(action: _Action) -> tuple[_Action, ...]:
    """The actions that this one is made of: itself, unless it overlaps several."""
    return (action,) if action.sub_actions is None else action.sub_actions


def _requires_reduce_grad(action_type: _ComputationType) -> bool:
    """Whether gradients of parameters are complete for a microbatch after such an action."""
    return action_type in (W, B)


def _get_profiler_function_name(action: _Action) -> str:
    return f"PP:{action}"


def _format_pipeline_order(pipeline_order: dict[int, list[_Action | None]],
                           error_step_number: int | None = None) -> str:
    """The order as a table: a row for each step, a column for each rank."""
    ranks = sorted(pipeline_order)
    steps = max((len(actions) for actions in pipeline_order.values()), default=0)
    digits = len(str(max(steps - 1, 0)))
    titles = [f"Step {step:0{digits}}" for step in range(steps)]
    cells = {rank: ["" if action is None else str(action) for action in pipeline_order[rank]]
             for rank in ranks}
    narrowest = len("Step ") + digits
    widths = [max(narrowest, len(f"Rank {place}"), *map(len, cells[rank]))
              for place, rank in enumerate(ranks)]
    indent = " " * (narrowest + 2)
    lines = [indent + " ".join(f"Rank {place}".ljust(width) for place, width in enumerate(widths))]
    for step, title in enumerate(titles):
        row = " ".join((cells[rank][step] if step < len(cells[rank]) else "").ljust(width)
                       for rank, width in zip(ranks, widths))
        mark = " <-- ERROR HERE" if step == error_step_number else ""
        lines.append(f"{title}: {row}{mark}")
    return "\n".join(lines) + "\n"
