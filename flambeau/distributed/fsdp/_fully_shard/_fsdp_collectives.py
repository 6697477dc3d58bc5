"""Gathering the parameters of a group and reducing their gradients, all in one message."""
from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import flambeau
from flambeau import Tensor
from flambeau.distributed import distributed_c10d as dist
from flambeau.distributed._c10d.reduce_op import ReduceOp
from flambeau.distributed.fsdp._fully_shard._fsdp_api import AllGather, ReduceScatter


class DefaultAllocMixin:
    """Memory as any other."""

    def allocate(self, size: Sequence[int], *, dtype: flambeau.dtype, device: flambeau.device
                 ) -> Tensor:
        """Memory for what is sent or received."""
        return flambeau.empty(*size, dtype=dtype, device=device)


class ProcessGroupAllocMixin:
    """Memory that a group of processes gives."""

    def __init__(self, group: Any, *args: Any, **kwargs: Any):
        self._group = group
        super().__init__(*args, **kwargs)

    def allocate(self, size: Sequence[int], *, dtype: flambeau.dtype, device: flambeau.device
                 ) -> Tensor:
        """Memory for what is sent or received; of the group where it has some."""
        backend = self._group._get_backend(device)
        if getattr(backend, "supports_tensor_alloc", lambda _: False)(device):
            return backend.allocate_tensor(prod(size), dtype=dtype, device=device).view(*size)
        return flambeau.empty(*size, dtype=dtype, device=device)


class DefaultAllGather(DefaultAllocMixin, AllGather):
    """`all_gather_into_tensor`."""

    def __call__(self, output_tensor: Tensor, input_tensor: Tensor, group: Any,
                 async_op: bool = False) -> Any:
        return dist.all_gather_into_tensor(output_tensor, input_tensor, group=group,
                                           async_op=async_op)


class ProcessGroupAllocAllGather(ProcessGroupAllocMixin, DefaultAllGather):
    """`all_gather_into_tensor` in memory that the group gives."""


class DefaultReduceScatter(DefaultAllocMixin, ReduceScatter):
    """`reduce_scatter_tensor`."""

    def __call__(self, output_tensor: Tensor, input_tensor: Tensor, group: Any, op: Any,
                 async_op: bool = False) -> Any:
        return dist.reduce_scatter_tensor(output_tensor, input_tensor, op=op, group=group,
                                          async_op=async_op)


class ProcessGroupAllocReduceScatter(ProcessGroupAllocMixin, DefaultReduceScatter):
    """`reduce_scatter_tensor` in memory that the group gives."""


class AllGatherResult(NamedTuple):
    """Parameters on their way: a row of each process, in it the pieces of all parameters."""
    output: Tensor
    work: Any
    sizes: list[int]


def foreach_all_gather(fsdp_params: Sequence[Any], group: Any, async_op: bool,
                       all_gather_comm: AllGather) -> AllGatherResult:
    """Ask all processes of a group for their pieces of parameters of one type."""
    pieces = [param.all_gather_input() for param in fsdp_params]
    device = pieces[0].device
    sent = all_gather_comm.allocate((sum(p.numel() for p in pieces),), dtype=pieces[0].dtype,
                                    device=device)
    flambeau.cat(pieces, out=sent)
    count = group.size()
    received = all_gather_comm.allocate((count * sent.numel(),), dtype=sent.dtype, device=device)
    work = all_gather_comm(received, sent, group, async_op)
    return AllGatherResult(received.view(count, -1), work, [p.numel() for p in pieces])


def foreach_all_gather_copy_out(all_gather_result: AllGatherResult, fsdp_params: Sequence[Any]
                                ) -> None:
    """Put what has arrived where the graph expects it."""
    received, work, sizes = all_gather_result
    if work is not None:
        work.wait()
    for param, rows in zip(fsdp_params, received.split(sizes, 1)):
        param.take_all_gather_output(rows)


class Divisors(NamedTuple):
    """By what gradients are divided before they are summed up, and after."""
    before: float
    after: float


def _get_gradient_divide_factors(count: int, reduce_dtype: flambeau.dtype,
                                 factor: float | None = None) -> Divisors:
    """Sums of float16 could overflow: these are divided half before and half after."""
    total = float(count) if factor is None else float(factor)
    if reduce_dtype is not flambeau.float16:
        return Divisors(1.0, total)
    before = 1.0
    while total % before == 0 and total / before > before:
        before *= 2
    return Divisors(before, total / before)


def _div_if_needed(tensor: Tensor, div_factor: float | None) -> None:
    if div_factor is not None and div_factor != 1:
        tensor.div_(div_factor)


def foreach_reduce(fsdp_params: Sequence[Any], unsharded_grads: Sequence[Tensor], group: Any,
                   reduce_scatter_comm: ReduceScatter, reduce_dtype: flambeau.dtype,
                   divisors: Divisors) -> Tensor:
    """This process's pieces of the gradients, one after the other, divided but for what comes
    after the sum."""
    count = 1 if group is None else group.size()
    rows = [param.reduce_scatter_input(grad, count).to(reduce_dtype)
            for param, grad in zip(fsdp_params, unsharded_grads)]
    whole = flambeau.cat(rows, 1).reshape(-1)
    _div_if_needed(whole, divisors.before)
    if count == 1:
        return whole
    received = reduce_scatter_comm.allocate((whole.numel() // count,), dtype=whole.dtype,
                                            device=whole.device)
    reduce_scatter_comm(received, whole, group, ReduceOp.SUM)
    return received
