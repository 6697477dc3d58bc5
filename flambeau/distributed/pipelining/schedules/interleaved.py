"""The schedules of several stages a rank: each is an order of computations."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...._support.own_methods import define_in_subclasses
from ....nn.modules.loss import _Loss
from .._utils import generate_stage_to_rank_mapping
from ..microbatch import TensorChunkSpec
from ..stage.base import _PipelineStageBase
from .actions import _Action
from .multi import _PipelineScheduleRuntime
from .orders import (
    Order,
    add_bubbles,
    dual_pipe_v_order,
    interleaved_order,
    looped_bfs_order,
    zbv_order,
)


@define_in_subclasses("__init__")
class _LoopedOrV(_PipelineScheduleRuntime):
    """A schedule that computes the order of all ranks when it is made."""

    def __init__(self, stages: list[_PipelineStageBase], n_microbatches: int,
                 loss_fn: Callable | None = None,
                 args_chunk_spec: tuple[TensorChunkSpec, ...] | None = None,
                 kwargs_chunk_spec: dict[str, TensorChunkSpec] | None = None,
                 output_merge_spec: dict[str, Any] | tuple[Any] | None = None,
                 scale_grads: bool = True, backward_requires_autograd: bool = True,
                 defer_pp_recv: bool = False):
        super().__init__(
            stages=stages, n_microbatches=n_microbatches, loss_fn=loss_fn,
            args_chunk_spec=args_chunk_spec, kwargs_chunk_spec=kwargs_chunk_spec,
            output_merge_spec=output_merge_spec, scale_grads=scale_grads,
            backward_requires_autograd=backward_requires_autograd, defer_pp_recv=defer_pp_recv)
        self.n_local_stages = len(stages)
        self._check_counts()
        self.pipeline_order = {rank: self._calculate_single_rank_operations(rank)
                               for rank in range(self.pp_group_size)}
        self._finish_orders()
        self._prepare_schedule_with_comms(self.pipeline_order)

    def _check_counts(self) -> None:
        """Raise where the schedule does not work with these stages and microbatches."""

    def _finish_orders(self) -> None:
        """What needs the orders of all ranks."""

    def _calculate_single_rank_operations(self, rank: int) -> Order:
        raise NotImplementedError

    def _set_rounds(self, title: str) -> None:
        """Microbatches go through the stages in rounds, of as many as there are ranks if they can
        be divided so."""
        self.number_of_rounds = max(1, self._n_microbatches // self.pp_group_size)
        self.microbatches_per_round = self._n_microbatches // self.number_of_rounds
        if self._n_microbatches % self.number_of_rounds:
            raise ValueError(f"{title} requires the number of microbatches to be a multiple of the "
                             f"number of rounds ({self.number_of_rounds}), but got "
                             f"{self._n_microbatches}.")

    def _set_v_mapping(self) -> None:
        if self.n_local_stages != 2:
            raise ValueError("ZBV requires exactly 2 stages per rank, but got "
                             f"{self.n_local_stages}.")
        self._set_stage_mapping(generate_stage_to_rank_mapping(
            self.pp_group_size, self._num_stages, style="v"))


class ScheduleLoopedBFS(_LoopedOrV):
    """Breadth first (Lamy-Poirier 2022): a stage does all microbatches, then the rank's next."""

    def __init__(self, stages: list[_PipelineStageBase], n_microbatches: int,
                 loss_fn: Callable | _Loss | None = None,
                 output_merge_spec: dict[str, Any] | tuple[Any] | None = None,
                 scale_grads: bool = True, backward_requires_autograd: bool = True,
                 defer_pp_recv: bool = False):
        super().__init__(
            stages, n_microbatches, loss_fn, output_merge_spec=output_merge_spec,
            scale_grads=scale_grads, backward_requires_autograd=backward_requires_autograd,
            defer_pp_recv=defer_pp_recv)

    def _calculate_single_rank_operations(self, rank: int) -> Order:
        return looped_bfs_order(rank, self.pp_group_size, self.n_local_stages,
                                self._n_microbatches)


class ScheduleInterleaved1F1B(_LoopedOrV):
    """One forward and one backward in turn, with the stages of a rank in turn as well (Narayanan
    et al. 2021). Works for any number of microbatches that is a multiple of its rounds."""

    def _check_counts(self) -> None:
        self._set_rounds("Interleaved 1F1B")

    def _calculate_single_rank_operations(self, rank: int) -> list[_Action | None]:
        return interleaved_order(rank, self.pp_group_size, self.n_local_stages,
                                 self._n_microbatches, self.number_of_rounds)


class ScheduleInterleavedZeroBubble(_LoopedOrV):
    """The interleaved schedule with the gradients of weights where ranks would wait (ZB1P of Qi
    et al. 2023, "Zero Bubble Pipeline Parallelism")."""

    def _check_counts(self) -> None:
        self._set_rounds("Zero bubble")

    def _calculate_single_rank_operations(self, rank: int) -> list[_Action | None]:
        return interleaved_order(rank, self.pp_group_size, self.n_local_stages,
                                 self._n_microbatches, self.number_of_rounds, zero_bubble=True)

    def _finish_orders(self) -> None:
        self.pipeline_order = self._add_bubbles_to_actions(self._num_stages)

    def _add_bubbles_to_actions(self, num_stages_global: int) -> dict[int, Order]:
        return add_bubbles(self.pipeline_order, num_stages_global)


class ScheduleZBVZeroBubble(_LoopedOrV):
    """Two stages a rank, there and back in a V, and the gradients of weights where ranks would
    wait (Qi et al. 2024)."""

    def _check_counts(self) -> None:
        self._set_v_mapping()

    def _calculate_single_rank_operations(self, rank: int) -> list[_Action | None]:
        return zbv_order(rank, self.pp_group_size, self._num_stages, self._n_microbatches)


class ScheduleDualPipeV(_LoopedOrV):
    """A V whose forwards overlap with the backwards of other microbatches (DeepSeek-AI 2025):
    register a custom function for `OVERLAP_F_B` to run the two at once."""

    def _check_counts(self) -> None:
        self._set_v_mapping()
        if self._n_microbatches < self._num_stages:
            raise ValueError("DualPipeV requires at least as many microbatches as stages, but got "
                             f"{self._n_microbatches} microbatches and {self._num_stages} stages.")

    def _calculate_single_rank_operations(self, rank: int) -> list[_Action | None]:
        return dual_pipe_v_order(rank, self.pp_group_size, self._num_stages, self._n_microbatches)
