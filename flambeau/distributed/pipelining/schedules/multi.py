"""Schedules of ranks that have several stages each: they run a list of actions for each rank."""
from __future__ import annotations

import csv
import logging
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from .... import distributed as dist
from ....autograd.profiler import record_function
from ...fsdp import FSDPModule
from .._utils import generate_stage_to_rank_mapping
from ..microbatch import TensorChunkSpec
from ..stage.base import _PipelineStageBase
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
    _Action,
    _ComputationType,
    _format_pipeline_order,
    _get_profiler_function_name,
)
from .base import _PipelineSchedule
from .lowering import (
    Orders,
    _add_reduce_grad,
    _add_send_recv,
    _add_unshard_reshard,
    _defer_recv_ops,
    _simulate_comms_compute,
    _validate_schedule,
)
from .messages import _batch_p2p, _wait_batch_p2p

logger = logging.getLogger("flambeau.distributed.pipelining.schedules")

Format = Literal["compute_only", "compute_comms"]


@dataclass
class _PipelineContext:
    """What a custom function of a schedule can use: the schedule and its microbatches."""

    schedule_ref: _PipelineSchedule
    arg_mbs: list[tuple] | None = None
    kwarg_mbs: list[dict] | None = None
    target_mbs: list | None = None
    losses: list | None = None


class _CustomFunctionProtocol(Protocol):
    """A function that does an action in a user's way."""

    def __call__(self, action: _Action, ctx: _PipelineContext) -> None: ...


class PipelineScheduleMulti(_PipelineSchedule):
    """Base of the schedules of several stages a rank.

    `stages` are those of this rank. `scale_grads` divides gradients by the number of microbatches.
    `backward_requires_autograd=False` is for stages that compute their backward in their own way.
    """

    def __init__(self, stages: list[_PipelineStageBase], n_microbatches: int,
                 loss_fn: Callable | None = None,
                 args_chunk_spec: tuple[TensorChunkSpec, ...] | None = None,
                 kwargs_chunk_spec: dict[str, TensorChunkSpec] | None = None,
                 output_merge_spec: dict[str, Any] | tuple[Any] | None = None,
                 use_full_backward: bool | None = None, scale_grads: bool = True,
                 backward_requires_autograd: bool = True):
        super().__init__(n_microbatches, loss_fn, args_chunk_spec, kwargs_chunk_spec,
                         output_merge_spec, scale_grads)
        self._stages = stages
        self._num_stages = stages[0].num_stages
        self.pp_group_size = stages[0].group_size
        self.rank = stages[0].group_rank
        self._backward_requires_autograd = backward_requires_autograd
        self._set_stage_mapping(generate_stage_to_rank_mapping(
            self.pp_group_size, self._num_stages))
        self._stages_forward_initialized = False
        self._stages_backward_initialized = False
        self.pipeline_order: Orders = {}
        self.backward_counter: Counter[int] = Counter()
        # messages and gathering that have begun, until somebody needs their result
        self.fwd_recv_ops: dict[tuple[int, int], list[dist.Work]] = {}
        self.bwd_recv_ops: dict[tuple[int, int], list[dist.Work]] = {}
        self.unshard_ops: dict[int, list[Any]] = defaultdict(list)
        self.unsharded_stages: set[int] = set()
        self._comp_type_to_function_map: dict[_ComputationType, Callable] = {}
        self._send_ops: list[list[dist.Work]] = []
        if use_full_backward is not None:
            logger.warning("Deprecation warning: 'use_full_backward' is no longer supported. "
                           "Simply stop passing it, and everything should still work fine.")

    def _set_stage_mapping(self, rank_of: dict[int, int]) -> None:
        self.stage_index_to_group_rank = rank_of
        for stage in self._stages:
            stage.stage_index_to_group_rank = rank_of

    def _should_compute_loss(self, stage: _PipelineStageBase) -> bool:
        return stage.is_last and self._loss_fn is not None

    def _initialize_stages(self, args: tuple[Any, ...], kwargs: dict[str, Any] | None,
                           target: Any = None,
                           loss_kwargs: dict[str, Any] | None = None) -> None:
        if any(stage.has_backward != self._has_backward for stage in self._stages):
            # training and evaluating do not receive the same
            self._stages_forward_initialized = self._stages_backward_initialized = False
        if not self._backward_requires_autograd:
            self._stages_backward_initialized = True
        self._stages_forward_initialized, self._stages_backward_initialized = (
            self._initialize_pp_stages(
                self._stages, args, kwargs, target, self._stages_forward_initialized,
                self._stages_backward_initialized, loss_kwargs))

    def _validate_and_set_stage_mapping(self, actions: Orders) -> None:
        """Check an order of all ranks, and take from it which rank has which stage."""
        self._set_stage_mapping(_validate_schedule(
            actions, self.pp_group_size, self._num_stages, self._n_microbatches))

    # ---- files ----------------------------------------------------------------------------------

    def _dump_csv(self, filename: str) -> None:
        """Write the order: a line for each rank."""
        _write_csv(self.pipeline_order, filename)

    def _load_csv(self, filename: str, format: Format = "compute_only") -> None:
        """Read an order in place of the schedule's own."""
        if format != "compute_only":
            raise AssertionError(f'format must be "compute_only", got {format}')
        self.pipeline_order = _read_csv(filename)
        self._validate_and_set_stage_mapping(self.pipeline_order)

    # ---- a step ---------------------------------------------------------------------------------

    def step(self, *args: Any, target: Any = None, losses: list | None = None,
             return_outputs: bool = True, loss_kwargs: dict[str, Any] | None = None,
             **kwargs: Any) -> Any:
        """Run a batch through the pipeline; see the schedules of one stage a rank."""
        self._check_grad_mode()
        for stage in self._stages:
            stage.clear_runtime_states()
        split_args, split_kwargs = self._split_inputs(args, kwargs)
        self._step_microbatches(split_args, split_kwargs, self._split_target(target), losses,
                                return_outputs, loss_kwargs)
        for stage in self._stages:
            if stage.is_last and return_outputs:
                return self._merge_outputs(stage.output_chunks)
        return None

    def _lowered(self) -> dict[int, list[_Action]]:
        """All that ranks do, of what they compute."""
        return _with_communication(self.pipeline_order, self._n_microbatches, self._num_stages,
                                   self.stage_index_to_group_rank)

    def _step_microbatches(self, arg_mbs: list | None = None, kwarg_mbs: list | None = None,
                           target_mbs: list | None = None, losses: list | None = None,
                           return_outputs: bool = True,
                           loss_kwargs: dict[str, Any] | None = None) -> None:
        arg_mbs, kwarg_mbs = self._check_inputs(arg_mbs, kwarg_mbs, target_mbs, losses)
        self._initialize_stages(arg_mbs[0], kwarg_mbs[0],
                                None if target_mbs is None else target_mbs[0], loss_kwargs)
        self.backward_counter.clear()
        self._send_ops = []
        step = _Step(self, _PipelineContext(self, arg_mbs, kwarg_mbs, target_mbs, losses),
                     return_outputs, loss_kwargs)
        orders = self._lowered()
        for place, action in enumerate(orders[self.rank]):
            try:
                with record_function(_get_profiler_function_name(action)):
                    step.run(action)
            except Exception:
                logger.error(
                    "_PipelineScheduleRuntime caught exception at step %s when running action %s."
                    "  Full Schedule:", place, action)
                logger.error("%s", _format_pipeline_order(orders, error_step_number=place))
                raise
        for works in self._send_ops:
            _wait_batch_p2p(works)
        self._update_losses(self._stages, losses)

    def _assert_unsharded(self, stage: _PipelineStageBase) -> None:
        """Wait until the parameters of a sharded stage are there."""
        if not isinstance(stage.submod, FSDPModule):
            return
        for handle in self.unshard_ops.pop(stage.stage_index, ()):
            if handle is not None:
                handle.wait()
            self.unsharded_stages.add(stage.stage_index)
        if stage.stage_index not in self.unsharded_stages:
            raise AssertionError(f"Attempted to compute on sharded stage_idx={stage.stage_index}")


class _Step:
    """One step of a schedule on this rank: how each kind of action is done."""

    def __init__(self, schedule: PipelineScheduleMulti, context: _PipelineContext,
                 return_outputs: bool, loss_kwargs: dict[str, Any] | None):
        self.schedule, self.context = schedule, context
        self.return_outputs, self.loss_kwargs = return_outputs, loss_kwargs
        self.stages = {stage.stage_index: stage for stage in schedule._stages}

    _backward_only = {FULL_BACKWARD, BACKWARD_INPUT, BACKWARD_WEIGHT, SEND_B, RECV_B, REDUCE_GRAD}

    def run(self, action: _Action) -> None:
        kind = action.computation_type
        if kind in self._backward_only and not self.schedule._has_backward:
            return
        if custom := self.schedule._comp_type_to_function_map.get(kind):
            custom(action, self.context)
        elif kind == OVERLAP_F_B:
            for part in action.sub_actions or ():
                self.run(part)
        else:
            stage = self.stages[action.stage_index]
            self._ways[kind](self, stage, action.microbatch_index)

    def _send_forward(self, stage: _PipelineStageBase, chunk: int) -> None:
        self.schedule._send_ops.append(_batch_p2p(stage.get_fwd_send_ops(chunk)))

    def _send_backward(self, stage: _PipelineStageBase, chunk: int) -> None:
        self.schedule._send_ops.append(_batch_p2p(stage.get_bwd_send_ops(chunk)))

    def _receive_forward(self, stage: _PipelineStageBase, chunk: int) -> None:
        self.schedule.fwd_recv_ops[stage.stage_index, chunk] = _batch_p2p(
            stage.get_fwd_recv_ops(chunk))

    def _receive_backward(self, stage: _PipelineStageBase, chunk: int) -> None:
        self.schedule.bwd_recv_ops[stage.stage_index, chunk] = _batch_p2p(
            stage.get_bwd_recv_ops(chunk))

    def _unshard(self, stage: _PipelineStageBase, chunk: int | None) -> None:
        if isinstance(stage.submod, FSDPModule):
            self.schedule.unshard_ops[stage.stage_index].append(
                stage.submod.unshard(async_op=True))

    def _reshard(self, stage: _PipelineStageBase, chunk: int | None) -> None:
        if isinstance(stage.submod, FSDPModule):
            self.schedule._assert_unsharded(stage)
            self.schedule.unsharded_stages.discard(stage.stage_index)
            stage.submod.reshard()

    def _reduce_grad(self, stage: _PipelineStageBase, chunk: int | None) -> None:
        stage.perform_reduce_grad(
            self.schedule._n_microbatches if self.schedule.scale_grads else 1)

    def _forward(self, stage: _PipelineStageBase, chunk: int) -> None:
        schedule, context = self.schedule, self.context
        schedule._assert_unsharded(stage)
        _wait_batch_p2p(schedule.fwd_recv_ops.pop((stage.stage_index, chunk), []))
        output = stage.forward_one_chunk(chunk, context.arg_mbs[chunk], context.kwarg_mbs[chunk],
                                         save_forward_output=self.return_outputs)
        schedule._maybe_compute_loss(stage, output, context.target_mbs, chunk, self.loss_kwargs)
        if after := self.stages.get(stage.stage_index + 1):
            after.set_local_fwd_input(output, chunk)

    def _backward(self, stage: _PipelineStageBase, chunk: int, full: bool = True) -> None:
        schedule = self.schedule
        schedule._assert_unsharded(stage)
        _wait_batch_p2p(schedule.bwd_recv_ops.pop((stage.stage_index, chunk), []))
        loss = schedule._maybe_get_loss(stage, chunk)
        schedule.backward_counter[stage.stage_index] += full
        stage.backward_one_chunk(chunk, loss=loss, full_backward=full,
                                 last_backward=full and self._is_last_backward(stage))
        if before := self.stages.get(stage.stage_index - 1):
            before.set_local_bwd_input(stage.get_local_bwd_output(chunk), chunk)

    def _backward_input(self, stage: _PipelineStageBase, chunk: int) -> None:
        self._backward(stage, chunk, full=False)

    def _backward_weight(self, stage: _PipelineStageBase, chunk: int) -> None:
        self.schedule._assert_unsharded(stage)
        self.schedule.backward_counter[stage.stage_index] += 1
        stage.backward_weight_one_chunk(chunk, last_backward=self._is_last_backward(stage))

    def _is_last_backward(self, stage: _PipelineStageBase) -> bool:
        done = self.schedule.backward_counter[stage.stage_index]
        return done == self.schedule._n_microbatches

    _ways = {SEND_F: _send_forward, SEND_B: _send_backward, RECV_F: _receive_forward,
             RECV_B: _receive_backward, UNSHARD: _unshard, RESHARD: _reshard,
             REDUCE_GRAD: _reduce_grad, FORWARD: _forward, FULL_BACKWARD: _backward,
             BACKWARD_INPUT: _backward_input, BACKWARD_WEIGHT: _backward_weight}


class _PipelineScheduleRuntime(PipelineScheduleMulti):
    """A schedule whose actions include communication, and whose kinds of actions can be replaced
    by functions of the user."""

    def __init__(self, *args: Any, **kwargs: Any):
        self._defer_pp_recv = kwargs.pop("defer_pp_recv", False)
        super().__init__(*args, **kwargs)

    def register_custom_function(self, computation_type: _ComputationType,
                                 custom_function: _CustomFunctionProtocol) -> None:
        """Do actions of a kind by `custom_function(action, context)`."""
        if computation_type not in (FORWARD, FULL_BACKWARD, BACKWARD_INPUT, BACKWARD_WEIGHT,
                                    OVERLAP_F_B, UNSHARD, RESHARD, REDUCE_GRAD):
            raise ValueError(
                f"Invalid computation type {computation_type}. Only FORWARD, FULL_BACKWARD, "
                "BACKWARD_INPUT, BACKWARD_WEIGHT, OVERLAP_F_B, UNSHARD, RESHARD and REDUCE_GRAD "
                "are supported.")
        if computation_type in self._comp_type_to_function_map:
            logger.warning("Computation type %s is already registered. Overwriting the existing "
                           "custom function.", computation_type)
        self._comp_type_to_function_map[computation_type] = custom_function

    def _prepare_schedule_with_comms(self, actions: Orders,
                                     format: Format = "compute_only") -> None:
        """Take an order, and find its communication unless it is there."""
        self._validate_and_set_stage_mapping(actions)
        if format == "compute_comms":
            self.pipeline_order_with_comms = {
                rank: [action for action in order if action is not None]
                for rank, order in actions.items()}
        elif format == "compute_only":
            _check_compute_only(actions)
            self.pipeline_order_with_comms = _with_communication(
                actions, self._n_microbatches, self._num_stages, self.stage_index_to_group_rank,
                self._defer_pp_recv)
        else:
            raise NotImplementedError(f"{format=} is not implemented")

    def _load_csv(self, filename: str, format: Format = "compute_only") -> None:
        actions = _read_csv(filename)
        if format == "compute_only":
            _check_compute_only(actions)
            self.pipeline_order = actions
        self._prepare_schedule_with_comms(actions, format)

    def _dump_csv(self, filename: str, format: Format = "compute_comms") -> None:
        if format == "compute_comms":
            _write_csv(self.pipeline_order_with_comms, filename)
        elif format == "compute_only":
            _write_csv(self.pipeline_order, filename)
        else:
            raise ValueError(f"{format=} is not one of compute_only and compute_comms")

    def _simulate(self) -> Orders:
        """The steps of all ranks, of equal length, with a None where one waits."""
        simple = {rank: [action for action in order
                         if action.computation_type not in (UNSHARD, RESHARD, REDUCE_GRAD)]
                  for rank, order in self.pipeline_order_with_comms.items()}
        return _simulate_comms_compute(
            simple, lambda stage: self.stage_index_to_group_rank[stage], self._num_stages)

    def _lowered(self) -> dict[int, list[_Action]]:
        return self.pipeline_order_with_comms


def _with_communication(actions: Orders, n_microbatches: int, num_stages: int,
                        rank_of: dict[int, int], defer_recv: bool = False
                        ) -> dict[int, list[_Action]]:
    """What ranks compute, with all that they gather, send and receive for it."""
    whole = {rank: _add_reduce_grad(_add_unshard_reshard(order), n_microbatches)
             for rank, order in actions.items()}
    lowered = _add_send_recv(whole, rank_of.__getitem__, num_stages)
    return _defer_recv_ops(lowered, rank_of.__getitem__) if defer_recv else lowered


def _check_compute_only(actions: Orders) -> None:
    for rank, order in actions.items():
        for place, action in enumerate(order):
            if action is not None and not action.is_compute_op:
                raise ValueError(
                    f"Expected compute-only schedule but found communication action '{action}' at "
                    f"rank {rank}, position {place}. Communication actions (e.g. SEND_F, RECV_F, "
                    "etc.) should not be present when format='compute_only'.")


def _write_csv(actions: Orders, filename: str) -> None:
    with open(filename, "w", newline="") as file:
        writer = csv.writer(file)
        for rank in actions:
            writer.writerow(actions[rank])


def _read_csv(filename: str) -> Orders:
    with open(filename, newline="") as file:
        return {rank: [_Action.from_str(cell) for cell in row]
                for rank, row in enumerate(csv.reader(file))}
