"""What all schedules share: microbatches, losses and results."""
from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import flambeau

from ..microbatch import TensorChunkSpec, merge_chunks, split_args_kwargs_into_chunks
from ..stage.base import _PipelineStageBase
from .messages import _batch_p2p, _wait_batch_p2p

logger = logging.getLogger("flambeau.distributed.pipelining.schedules")

Tensor = flambeau.Tensor


class _PipelineSchedule(ABC):
    def __init__(self, n_microbatches: int, loss_fn: Callable[..., Tensor] | None = None,
                 args_chunk_spec: tuple[TensorChunkSpec, ...] | None = None,
                 kwargs_chunk_spec: dict[str, TensorChunkSpec] | None = None,
                 output_merge_spec: dict[str, Any] | tuple[Any] | None = None,
                 scale_grads: bool = True):
        self._n_microbatches = n_microbatches
        self._loss_fn = loss_fn
        self.scale_grads = scale_grads
        self._args_chunk_spec = args_chunk_spec
        self._kwargs_chunk_spec = kwargs_chunk_spec
        self._output_merge_spec = output_merge_spec
        self._has_backward = loss_fn is not None
        self._internal_losses: list[Tensor] = []

    # ---- losses ---------------------------------------------------------------------------------

    def _compute_loss(self, output: Any, target: Any,
                      loss_kwargs: dict[str, Any] | None = None) -> Tensor:
        return self._loss_fn(output, target, **(loss_kwargs or {}))

    def _maybe_compute_loss(self, stage: _PipelineStageBase, output: Any,
                            target_mbs: list[Any] | None, mb_index: int,
                            loss_kwargs: dict[str, Any] | None = None) -> None:
        if not stage.is_last or self._loss_fn is None:
            return
        if target_mbs is None and not self._has_backward:
            return                          # an evaluation for the outputs only
        self._internal_losses.append(
            self._compute_loss(output, target_mbs[mb_index], loss_kwargs))

    def _maybe_get_loss(self, stage: _PipelineStageBase, mb_index: int) -> Tensor | None:
        if not stage.is_last or self._loss_fn is None:
            return None
        if not 0 <= mb_index < len(self._internal_losses):
            raise RuntimeError(f"Loss for microbatch {mb_index} is not available. Available losses "
                               f"for microbatches: {self._internal_losses}")
        return self._internal_losses[mb_index]

    def _update_losses(self, stages: _PipelineStageBase | Sequence[_PipelineStageBase],
                       losses: list[Tensor] | None) -> None:
        """Give the losses of the microbatches to the user."""
        every = [stages] if isinstance(stages, _PipelineStageBase) else stages
        if losses is not None and any(stage.is_last for stage in every):
            found = self._internal_losses
            if len(found) != self._n_microbatches:
                raise RuntimeError(
                    f"Expecting {self._n_microbatches} losses but got {len(found)}")
            losses[:] = found
        self._internal_losses.clear()

    # ---- before the first microbatch ------------------------------------------------------------

    def _warmup_p2p(self, stages: list[_PipelineStageBase], has_backward: bool,
                    p2p_done: bool) -> None:
        """Make the connections between neighbours."""
        if not p2p_done:
            for stage in stages:
                _wait_batch_p2p(_batch_p2p(stage._get_init_p2p_neighbors_ops()))

    def _initialize_pp_stages(self, stages: list[_PipelineStageBase], args: tuple[Any, ...] | Any,
                              kwargs: dict[str, Any] | None, target: Any, fwd_initialized: bool,
                              bwd_initialized: bool, loss_kwargs: dict[str, Any] | None = None,
                              ) -> tuple[bool, bool]:
        """Let stages find what they receive and send. Each tells its neighbour in turn: forward
        from the first to the last, backward from the last to the first."""
        stages = sorted(stages, key=lambda stage: stage.stage_index)
        count, backward = self._n_microbatches, self._has_backward
        if not fwd_initialized:
            told: Any = None
            for stage in stages:
                if hasattr(stage, "_warmup_forward_vote"):
                    told = stage._warmup_forward_vote(backward, told)
            for stage in reversed(stages):
                if hasattr(stage, "_warmup_backward_result"):
                    told = stage._warmup_backward_result(told)
            told = None
            for stage in stages:
                told = stage._prepare_forward_infra(
                    count, args if stage.is_first else told, kwargs, backward)
                stage.has_backward = backward
            bwd_initialized = False
        if backward and not bwd_initialized:
            told = None
            for stage in reversed(stages):
                told = stage._prepare_backward_infra(
                    count, self._loss_fn, target, told, loss_kwargs)
        return True, backward

    # ---- a step ---------------------------------------------------------------------------------

    @abstractmethod
    def _step_microbatches(self, arg_mbs: list | None = None, kwarg_mbs: list | None = None,
                           target_mbs: list | None = None, losses: list | None = None,
                           return_outputs: bool = True,
                           loss_kwargs: dict[str, Any] | None = None) -> None:
        """Run the schedule on microbatches that are cut already."""

    @abstractmethod
    def step(self, *args: Any, target: Any = None, losses: list | None = None,
             return_outputs: bool = True, loss_kwargs: dict[str, Any] | None = None,
             **kwargs: Any) -> Any:
        """Run the schedule on a whole batch."""

    def eval(self, *args: Any, target: Any = None, losses: list | None = None,
             **kwargs: Any) -> Any:
        """Run the forwards of the schedule only."""
        before, self._has_backward = self._has_backward, False
        try:
            return self.step(*args, target=target, losses=losses, **kwargs)
        finally:
            self._has_backward = before

    def _check_inputs(self, arg_mbs: list | None = None, kwarg_mbs: list | None = None,
                      target_mbs: list | None = None,
                      losses: list | None = None) -> tuple[list, list]:
        def check(values: Any, name: str, counted: bool = True) -> None:
            if not isinstance(values, list):
                raise TypeError(f"{name} must be a list but got a {type(values)}")
            if counted and len(values) != self._n_microbatches:
                raise ValueError(f"Expecting {self._n_microbatches} {name} but got {len(values)}")

        if arg_mbs is not None:
            check(arg_mbs, "arg_mbs")
        if kwarg_mbs is not None:
            check(kwarg_mbs, "kwarg_mbs")
        if target_mbs is not None:
            check(target_mbs, "target_mbs")
        if losses is not None:
            check(losses, "losses", counted=False)
        return (arg_mbs if arg_mbs is not None else [()] * self._n_microbatches,
                kwarg_mbs if kwarg_mbs is not None else [{}] * self._n_microbatches)

    def _split_inputs(self, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None
                      ) -> tuple[list[tuple], list[dict]]:
        if not args and not kwargs:
            return [()] * self._n_microbatches, [{}] * self._n_microbatches
        split = split_args_kwargs_into_chunks(args, kwargs, self._n_microbatches,
                                              self._args_chunk_spec, self._kwargs_chunk_spec)
        if len(split[0]) < self._n_microbatches:
            sizes = [value.size(0) for value in (*args, *(kwargs or {}).values())
                     if isinstance(value, Tensor) and value.dim()]
            raise AssertionError(f"Tensor size {min(sizes, default=len(split[0]))} is smaller than "
                                 f"num_chunks {self._n_microbatches}")
        return split

    def _split_target(self, target: Any) -> list[Any] | None:
        if target is None:
            return None
        if isinstance(target, Tensor):
            return list(flambeau.tensor_split(target, self._n_microbatches))
        split, _ = split_args_kwargs_into_chunks((target,), None, self._n_microbatches)
        return [chunk for chunk, in split]

    def _merge_outputs(self, output_chunks: list[Any]) -> Any:
        return merge_chunks(output_chunks, self._output_merge_spec)

    def _check_grad_mode(self) -> None:
        if self._has_backward and not flambeau.is_grad_enabled():
            raise RuntimeError(
                "step() requires gradients to be enabled for backward computation; it should not "
                "be used under torch.no_grad() context. Please call eval() instead.")
