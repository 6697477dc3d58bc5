"""Schedules of ranks that have one stage each."""
from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from ....autograd.profiler import record_function
from ..microbatch import TensorChunkSpec
from ..stage.base import Tensor, _PipelineStageBase
from .actions import _Action
from .base import _PipelineSchedule
from .lowering import _add_reduce_grad
from .messages import _batch_p2p, _sorted_batch_p2p, _wait_batch_p2p
from .orders import gpipe_order, one_f_one_b_order

logger = logging.getLogger("flambeau.distributed.pipelining.schedules")


class PipelineScheduleSingle(_PipelineSchedule):
    """Base of the schedules of one stage a rank."""

    def __init__(self, stage: _PipelineStageBase, n_microbatches: int,
                 loss_fn: Callable | None = None,
                 args_chunk_spec: tuple[TensorChunkSpec, ...] | None = None,
                 kwargs_chunk_spec: dict[str, TensorChunkSpec] | None = None,
                 output_merge_spec: dict[str, Any] | tuple[Any] | None = None,
                 scale_grads: bool = True):
        super().__init__(n_microbatches, loss_fn, args_chunk_spec, kwargs_chunk_spec,
                         output_merge_spec, scale_grads)
        if not isinstance(stage, _PipelineStageBase):
            # a list of stages is for the other schedules
            stage.num_stages  # noqa: B018 (raises as PyTorch does where there is none)
        self._stage = stage
        self._num_stages = stage.num_stages
        self._stage_forward_initialized = False
        self._stage_backward_initialized = False
        if n_microbatches < self._num_stages and self._needs_microbatch_for_each_stage:
            raise ValueError(
                f"Number of microbatches ({n_microbatches}) must be greater than or equal to the "
                f"number of stages ({self._num_stages}).")
        order = self._get_pipeline_order()
        self.pipeline_order: dict[int, list[_Action | None]] | None = order and {
            rank: _add_reduce_grad(actions, n_microbatches) for rank, actions in order.items()}

    _needs_microbatch_for_each_stage = False

    def _initialize_stage(self, args: tuple[Any, ...], kwargs: dict[str, Any] | None,
                          target: Any = None,
                          loss_kwargs: dict[str, Any] | None = None) -> None:
        if self._stage.has_backward != self._has_backward:
            # training and evaluating do not receive the same
            self._stage_forward_initialized = self._stage_backward_initialized = False
        self._stage_forward_initialized, self._stage_backward_initialized = (
            self._initialize_pp_stages(
                [self._stage], args, kwargs, target, self._stage_forward_initialized,
                self._stage_backward_initialized, loss_kwargs))

    def step(self, *args: Any, target: Any = None, losses: list | None = None,
             return_outputs: bool = True, loss_kwargs: dict[str, Any] | None = None,
             **kwargs: Any) -> Any:
        """Run a batch through the pipeline: forwards, losses and backwards of its microbatches.

        The first stage gets the batch, the last one its target, all of them keyword arguments.
        `losses` is filled with the loss of each microbatch on the last rank, which also returns
        the outputs. Gradients are the mean of those of the microbatches, unless the schedule was
        made with `scale_grads=False`.
        """
        self._check_grad_mode()
        self._stage.clear_runtime_states()
        split_args, split_kwargs = self._split_inputs(args, kwargs)
        self._step_microbatches(split_args, split_kwargs, self._split_target(target), losses,
                                return_outputs, loss_kwargs)
        if self._stage.is_last and return_outputs:
            return self._merge_outputs(self._stage.output_chunks)
        return None

    def _get_pipeline_order(self) -> dict[int, list[_Action | None]] | None:
        """The order of all ranks, for pictures of the schedule."""
        return None

    # ---- parts of a step ------------------------------------------------------------------------

    def _begin(self, arg_mbs: list | None, kwarg_mbs: list | None, target_mbs: list | None,
               losses: list | None, loss_kwargs: dict[str, Any] | None) -> tuple[list, list]:
        arg_mbs, kwarg_mbs = self._check_inputs(arg_mbs, kwarg_mbs, target_mbs, losses)
        self._initialize_stage(arg_mbs[0], kwarg_mbs[0],
                               None if target_mbs is None else target_mbs[0], loss_kwargs)
        return arg_mbs, kwarg_mbs

    def _forward(self, chunk: int, args: tuple[Any, ...], kwargs: dict[str, Any],
                 target_mbs: list | None, return_outputs: bool,
                 loss_kwargs: dict[str, Any] | None) -> Any:
        with record_function(f"Forward {chunk}"):
            output = self._stage.forward_one_chunk(chunk, args, kwargs, return_outputs)
        self._maybe_compute_loss(self._stage, output, target_mbs, chunk, loss_kwargs)
        return output

    def _backward(self, chunk: int) -> None:
        with record_function(f"Backward {chunk}"):
            self._stage.backward_one_chunk(chunk, self._maybe_get_loss(self._stage, chunk),
                                           last_backward=chunk == self._n_microbatches - 1)

    def _finish(self, losses: list[Tensor] | None) -> None:
        self._update_losses(self._stage, losses)
        if self._has_backward:
            self._stage.perform_reduce_grad(self._n_microbatches if self.scale_grads else 1)

    def _receive(self, ops: list, desc: str) -> None:
        for works in _sorted_batch_p2p(ops, desc).values():
            _wait_batch_p2p(works)

    def _all_forwards(self, arg_mbs: list, kwarg_mbs: list, target_mbs: list | None,
                      return_outputs: bool, loss_kwargs: dict[str, Any] | None) -> None:
        """Each microbatch forward, as soon as it has arrived."""
        sends = []
        for chunk in range(self._n_microbatches):
            self._receive(self._stage.get_fwd_recv_ops(chunk), "fwd_recv")
            self._forward(chunk, arg_mbs[chunk], kwarg_mbs[chunk], target_mbs, return_outputs,
                          loss_kwargs)
            sends += _batch_p2p(self._stage.get_fwd_send_ops(chunk), "fwd_send")
        _wait_batch_p2p(sends)


class _ScheduleForwardOnly(PipelineScheduleSingle):
    """Forwards without losses and backwards."""

    def _step_microbatches(self, arg_mbs: list | None = None, kwarg_mbs: list | None = None,
                           target_mbs: list | None = None, losses: list | None = None,
                           return_outputs: bool = True,
                           loss_kwargs: dict[str, Any] | None = None) -> None:
        if target_mbs is not None or losses is not None:
            raise RuntimeError("Forward-only schedule does not support loss computation")
        arg_mbs, kwarg_mbs = self._begin(arg_mbs, kwarg_mbs, None, None, loss_kwargs)
        self._all_forwards(arg_mbs, kwarg_mbs, None, return_outputs, loss_kwargs)


class ScheduleGPipe(PipelineScheduleSingle):
    """All microbatches forward, then all backward (Huang et al. 2019)."""

    def _step_microbatches(self, arg_mbs: list | None = None, kwarg_mbs: list | None = None,
                           target_mbs: list | None = None, losses: list | None = None,
                           return_outputs: bool = True,
                           loss_kwargs: dict[str, Any] | None = None) -> None:
        arg_mbs, kwarg_mbs = self._begin(arg_mbs, kwarg_mbs, target_mbs, losses, loss_kwargs)
        self._all_forwards(arg_mbs, kwarg_mbs, target_mbs, return_outputs, loss_kwargs)
        if self._has_backward:
            sends = []
            for chunk in range(self._n_microbatches):
                self._receive(self._stage.get_bwd_recv_ops(chunk), "bwd_recv")
                self._backward(chunk)
                sends += _batch_p2p(self._stage.get_bwd_send_ops(chunk), "bwd_send")
            _wait_batch_p2p(sends)
        self._finish(losses)

    def _get_pipeline_order(self) -> dict[int, list[_Action | None]] | None:
        return gpipe_order(self._num_stages, self._n_microbatches)


class Schedule1F1B(PipelineScheduleSingle):
    """After a warmup, one microbatch forward and one backward in turn (Narayanan et al. 2019): a
    stage keeps values of as many microbatches as there are stages from it on, not of all."""

    _needs_microbatch_for_each_stage = True

    def _step_microbatches(self, arg_mbs: list | None = None, kwarg_mbs: list | None = None,
                           target_mbs: list | None = None, losses: list | None = None,
                           return_outputs: bool = True,
                           loss_kwargs: dict[str, Any] | None = None) -> None:
        arg_mbs, kwarg_mbs = self._begin(arg_mbs, kwarg_mbs, target_mbs, losses, loss_kwargs)
        stage, sends = self._stage, []
        if not self._has_backward:
            self._all_forwards(arg_mbs, kwarg_mbs, target_mbs, return_outputs, loss_kwargs)
            self._finish(losses)
            return
        warmup = min(self._n_microbatches, stage.num_stages - stage.stage_index)
        ahead = 0                               # forwards that have been done
        for chunk in range(self._n_microbatches):       # the next backward
            while ahead < min(warmup + chunk, self._n_microbatches):
                self._receive(stage.get_fwd_recv_ops(ahead), "fwd_recv")
                self._forward(ahead, arg_mbs[ahead], kwarg_mbs[ahead], target_mbs,
                              return_outputs, loss_kwargs)
                sends += _batch_p2p(stage.get_fwd_send_ops(ahead), "fwd_send")
                ahead += 1
            self._receive(stage.get_bwd_recv_ops(chunk), "bwd_recv")
            self._backward(chunk)
            sends += _batch_p2p(stage.get_bwd_send_ops(chunk), "bwd_send")
        _wait_batch_p2p(sends)
        self._finish(losses)

    def _get_pipeline_order(self) -> dict[int, list[_Action | None]] | None:
        return one_f_one_b_order(self._num_stages, self._n_microbatches)
