"""Means of gradients, whole or a part for each process, in their own type or a smaller one."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.distributed import distributed_c10d as dist


class DefaultState:
    """The process group, and by what gradients are divided before and after they are added up:
    about the root of its size each, which keeps small types from overflow."""

    __slots__ = ["gradient_postdivide_factor", "gradient_predivide_factor", "process_group",
                 "world_size"]

    def __init__(self, process_group: Any):
        if process_group is None:
            raise ValueError(f"Expected to pass in an explicit ProcessGroup to {self}.")
        self.process_group = process_group
        self.world_size = dist.get_world_size(process_group)
        self.gradient_predivide_factor = self._get_gradient_predivide_factor(self.world_size)
        self.gradient_postdivide_factor = self.world_size / self.gradient_predivide_factor

    @staticmethod
    def _get_gradient_predivide_factor(world_size: int) -> float:
        factor = 1
        while world_size % factor == 0 and world_size / factor > factor:
            factor *= 2
        return float(factor)


class LowPrecisionState(DefaultState):
    """The same, and the type that gradients have in the end."""

    __slots__ = ["parameter_type"]

    def __init__(self, process_group: Any, parameter_type: flambeau.dtype = flambeau.float32):
        super().__init__(process_group)
        self.parameter_type = parameter_type


def _decompress(state: LowPrecisionState, grad: Tensor) -> None:
    """Give gradients their type again."""
    grad.data = grad.data.to(state.parameter_type)


def allreduce_hook(state: DefaultState, grad: Tensor) -> None:
    """`grad` becomes the mean over the processes."""
    if state.gradient_predivide_factor > 1:
        grad.div_(state.gradient_predivide_factor)
    dist.all_reduce(grad, group=state.process_group)
    if state.gradient_postdivide_factor > 1:
        grad.div_(state.gradient_postdivide_factor)


def reduce_scatter_hook(state: DefaultState, grad: Tensor, output: Tensor) -> None:
    """`output` becomes this process's part of the mean over the processes."""
    if state.gradient_predivide_factor > 1:
        grad.div_(state.gradient_predivide_factor)
    dist.reduce_scatter_tensor(output, grad, group=state.process_group)
    if state.gradient_postdivide_factor > 1:
        output.div_(state.gradient_postdivide_factor)


def _low_precision_hook(prec: flambeau.dtype, state: LowPrecisionState, grad: Tensor,
                        output: Tensor | None) -> None:
    if grad.dtype != prec:
        grad.data = grad.data.to(prec)
    if output is None:
        allreduce_hook(state, grad)
        _decompress(state, grad)
        return
    if output.dtype != prec:
        output.data = output.data.to(prec)
    reduce_scatter_hook(state, grad, output)
    _decompress(state, output)


def fp16_compress_hook(state: LowPrecisionState, grad: Tensor,
                       output: Tensor | None = None) -> None:
    """The mean of gradients that travel as float16: a part of it, where there is an `output`."""
    _low_precision_hook(flambeau.float16, state, grad, output)


def bf16_compress_hook(state: LowPrecisionState, grad: Tensor,
                       output: Tensor | None = None) -> None:
    """The mean of gradients that travel as bfloat16: a part of it, where there is an `output`."""
    _low_precision_hook(flambeau.bfloat16, state, grad, output)
