"""PowerSGD: gradients of matrices travel as two thin factors.

Vogels, Karimireddy and Jaggi, "PowerSGD: Practical Low-Rank Gradient Compression for Distributed
Optimization", 2019, https://arxiv.org/abs/1905.13727. M ≈ P Qᵀ: one step of the power method,
P = M Q, then Q = Mᵀ P with P orthogonal, which begins with the Q of the step before. What the
factors miss is added to the next gradient.
"""
from __future__ import annotations

import logging
import math
from collections import defaultdict
from typing import Any

import numpy as np

import flambeau
from flambeau import Tensor
from flambeau.distributed import distributed_c10d as dist
from flambeau.distributed.algorithms.ddp_comm_hooks import default_hooks as default
from flambeau.futures import Future, _completed

__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]

logger = logging.getLogger(__name__)


# ---- factors ------------------------------------------------------------------------------------

def _orthogonalize(matrices: Tensor, epsilon: float = 0) -> None:
    """Make the columns of each matrix of a batch orthonormal, in place."""
    assert len(matrices.shape) == 3 and matrices.shape[2] <= matrices.shape[1]
    if matrices.shape[2] <= 2 or matrices.dtype in (flambeau.float16, flambeau.bfloat16):
        _orthogonalize_gram_schmidt(matrices, epsilon=epsilon)
    else:
        matrices.copy_(flambeau.linalg.qr(matrices)[0])


def _orthogonalize_gram_schmidt(matrices: Tensor, epsilon: float = 0) -> None:
    """The same by the method of Gram and Schmidt; `epsilon` keeps from dividing by zero."""
    for i in range(matrices.shape[2]):
        column = matrices[:, :, i:i + 1]
        column /= flambeau.norm(column, dim=1, keepdim=True) + epsilon
        if i + 1 < matrices.shape[2]:
            rest = matrices[:, :, i + 1:]
            rest -= flambeau.sum(column * rest, dim=1, keepdim=True) * column


def _should_compress(num_rows: int, num_cols: int, matrix_approximation_rank: int,
                     min_compression_rate: float) -> tuple[bool, int, int]:
    """Are the factors small enough? And the sizes of matrix and factors."""
    before = num_rows * num_cols
    after = (num_rows + num_cols) * matrix_approximation_rank
    return after * min_compression_rate < before, before, after


def _report_compression_stats(bucket: Any, state: PowerSGDState) -> None:
    """Log from time to time how much is saved."""
    if bucket.is_last() and state.iter >= state.next_stats_report:
        rate, before, after = state.compression_stats()
        logger.info("Compression stats: iter %s, total before compression %s, total after "
                    "compression %s, rate %s", state.iter, before, after, rate)
        state.next_stats_report = state.iter + state.compression_stats_logging_frequency


class PowerSGDState:
    """How gradients are compressed, and what is kept from step to step.

    `matrix_approximation_rank` is the width of the factors; the first `start_powerSGD_iter` steps
    are not compressed, nor is a matrix of which less than a `min_compression_rate`th is saved.
    """

    __slots__ = [
        "batch_tensors_with_same_shape", "compression_stats_logging_frequency", "error_dict",
        "iter", "matrix_approximation_rank", "min_compression_rate", "next_stats_report",
        "orthogonalization_epsilon", "p_memory_dict", "process_group", "q_memory_dict", "rng",
        "start_powerSGD_iter", "total_numel_after_compression", "total_numel_before_compression",
        "use_error_feedback", "warm_start"]

    def __init__(self, process_group: Any, matrix_approximation_rank: int = 1,
                 start_powerSGD_iter: int = 1000, min_compression_rate: float = 2,
                 use_error_feedback: bool = True, warm_start: bool = True,
                 orthogonalization_epsilon: float = 0, random_seed: int = 0,
                 compression_stats_logging_frequency: int = 10_000,
                 batch_tensors_with_same_shape: bool = False):
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is "
                "enabled, because PowerSGD can only be applied after the first two iterations in "
                "DDP.")
        self.process_group = process_group
        self.matrix_approximation_rank = matrix_approximation_rank
        self.start_powerSGD_iter = start_powerSGD_iter
        self.min_compression_rate = min_compression_rate
        self.use_error_feedback, self.warm_start = use_error_feedback, warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.rng = np.random.RandomState(random_seed)
        self.error_dict: dict[int, Tensor] = {}
        self.p_memory_dict: dict[int, Tensor] = {}
        self.q_memory_dict: dict[int, Tensor] = {}
        self.iter = 0
        self.total_numel_before_compression = self.total_numel_after_compression = 0
        self.compression_stats_logging_frequency = max(1, compression_stats_logging_frequency)
        self.next_stats_report = 0
        self.batch_tensors_with_same_shape = batch_tensors_with_same_shape

    def __getstate__(self) -> dict[str, Any]:
        logger.warning("NOTE: Process group is not serializable and excluded from a saved state.")
        return {name: getattr(self, name) for name in self.__slots__ if name != "process_group"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.process_group = dist._get_default_group()
        logger.warning("NOTE: Process group will be set to a default group (i.e. the world size). "
                       "If a different group is desired, please set `self.process_group` after "
                       "PowerSGD state is loaded.")
        for name, value in state.items():
            setattr(self, name, value)

    def maybe_increase_iter(self, bucket: Any) -> None:
        """Count a step, at its last bucket."""
        if bucket.is_last():
            self.iter += 1
        if self.iter == self.start_powerSGD_iter:
            logger.info("Start to apply PowerSGD after %s iterations.", self.iter)

    def compression_stats(self) -> tuple[float, int, int]:
        """The rate of compression, and how many values there were before and after it."""
        before, after = self.total_numel_before_compression, self.total_numel_after_compression
        return (before / after if after > 0 else 0), before, after

    def _group(self) -> Any:
        return dist.group.WORLD if self.process_group is None else self.process_group

    def _corrected(self, index: int, flat: Tensor) -> Tensor | None:
        """Add what the last step missed to the gradients; a copy of the sum."""
        if not self.use_error_feedback:
            return None
        if index in self.error_dict:
            flat.add_(self.error_dict[index])
        else:
            self.error_dict[index] = flambeau.zeros_like(flat)
        return flat.clone()

    def _finish(self, bucket: Any, flat: Tensor, corrected: Tensor | None) -> None:
        if corrected is not None:
            self.error_dict[bucket.index()] = corrected - flat
        if not self.warm_start:
            self.p_memory_dict.clear()
            self.q_memory_dict.clear()
        self.maybe_increase_iter(bucket)

    def _memory(self, index: int, sizes: tuple[int, int], flat: Tensor) -> bool:
        """Have memory for the factors of a bucket; must Q begin at random?"""
        if self.warm_start and index in self.p_memory_dict:
            return False
        self.p_memory_dict[index], self.q_memory_dict[index] = (
            flambeau.empty(size, dtype=flat.dtype) for size in sizes)
        return True

    def _begin(self, factors: list[Tensor], at_random: bool) -> None:
        """Make each Q orthogonal; at random, alike in all processes, where it is new."""
        if at_random:
            with flambeau.random.fork_rng(devices=[]):
                flambeau.manual_seed(int(self.rng.randint(1_000_000_000)))
                for q in factors:
                    q.copy_(flambeau.randn(*q.shape, dtype=q.dtype))
        for q in factors:
            _orthogonalize(q, self.orthogonalization_epsilon)


# ---- hooks --------------------------------------------------------------------------------------

def powerSGD_hook(state: PowerSGDState, bucket: Any) -> Future[Tensor]:
    """Share gradients as factors, each matrix by itself: see `PowerSGDState`.

    >>> state = PowerSGDState(None, matrix_approximation_rank=1, start_powerSGD_iter=10)
    >>> model.register_comm_hook(state, powerSGD_hook)                        # doctest: +SKIP
    """
    group, flat = state._group(), bucket.buffer()
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return default._allreduce_fut(group, flat)
    corrected = state._corrected(bucket.index(), flat)
    matrices, others = _sorted(state, bucket.gradients())
    _report_compression_stats(bucket, state)
    batches = _batched(matrices, together=state.batch_tensors_with_same_shape)
    shapes = [(*batch.shape, min(*batch.shape[1:], state.matrix_approximation_rank))
              for _, batch in batches]
    sizes = tuple(sum(shape[0] * shape[side] * shape[3] for shape in shapes) for side in (1, 2))
    at_random = state._memory(bucket.index(), sizes, flat)
    memory = state.p_memory_dict[bucket.index()], state.q_memory_dict[bucket.index()]
    ps, qs = (_views(flat_factors, shapes, side) for side, flat_factors in zip((1, 2), memory))
    state._begin(qs, at_random)
    for (_, batch), p, q in zip(batches, ps, qs):
        p.copy_(flambeau.bmm(batch, q))
    uncompressed = flambeau.cat([t.reshape(-1) for t in others]) if others else flat.new_empty(0)
    # The order of these is the same in all processes, so they are not left to callbacks.
    dist.all_reduce(uncompressed, group=group)
    for tensor, mean in zip(others, uncompressed.div_(group.size()).split(
            [t.numel() for t in others])):
        tensor.copy_(mean.view_as(tensor))
    dist.all_reduce(memory[0], group=group)
    for (_, batch), p, q in zip(batches, ps, qs):
        _orthogonalize(p, state.orthogonalization_epsilon)
        q.copy_(flambeau.bmm(batch.transpose(1, 2), p))
    dist.all_reduce(memory[1], group=group)
    memory[1].div_(group.size())
    for (members, _), p, q in zip(batches, ps, qs):
        for member, product in zip(members, flambeau.bmm(p, q.transpose(1, 2))):
            member.copy_(product)
    state._finish(bucket, flat, corrected)
    return _completed(flat)


def _sorted(state: PowerSGDState, tensors: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """The matrices that are compressed, and the other tensors."""
    matrices: list[Any] = []
    others: list[Any] = []
    for tensor in tensors:
        matrix = tensor.view(tensor.shape[0], -1) if tensor.ndim else tensor.view(1, 1)
        rank = min(*matrix.shape, state.matrix_approximation_rank)
        rows, columns = matrix.shape
        smaller, before, after = _should_compress(rows, columns, rank, state.min_compression_rate)
        state.total_numel_before_compression += before
        state.total_numel_after_compression += after if smaller else before
        (matrices if smaller else others).append(matrix if smaller else tensor)
    return matrices, others


def _batched(matrices: list[Tensor], together: bool) -> list[tuple[list[Tensor], Tensor]]:
    """The members of each batch, and the batch: matrices of one shape, `together` or one by one.

    Matrices of one shape follow one another in both cases: the random Q are drawn in this order.
    """
    groups = defaultdict(list)
    for matrix in matrices:
        groups[matrix.shape].append(matrix)
    if together:
        return [(group, flambeau.stack(group)) for group in groups.values()]
    return [([matrix], matrix.unsqueeze(0)) for group in groups.values() for matrix in group]


def _views(flat: Tensor, shapes: list[tuple[int, ...]], side: int) -> list[Tensor]:
    """The factors of one side, which lie one after the other."""
    sizes = [shape[0] * shape[side] * shape[3] for shape in shapes]
    return [part.view(shape[0], shape[side], shape[3])
            for part, shape in zip(flat.split(sizes), shapes)]


def batched_powerSGD_hook(state: PowerSGDState, bucket: Any) -> Future[Tensor]:
    """Share gradients as factors, a whole bucket as one square matrix: faster than
    `powerSGD_hook`, less exact."""
    group, flat = state._group(), bucket.buffer()
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return default._allreduce_fut(group, flat)
    side, rank = math.ceil(math.sqrt(flat.numel())), state.matrix_approximation_rank
    state.total_numel_before_compression += flat.numel()
    state.total_numel_after_compression += 2 * side * rank
    _report_compression_stats(bucket, state)
    padded = flambeau.nn.functional.pad(flat, [0, side * side - flat.numel()])
    corrected = state._corrected(bucket.index(), padded)
    at_random = state._memory(bucket.index(), (side * rank, side * rank), flat)
    matrix = padded.view(1, side, side)
    p, q = (memory[bucket.index()].view(1, side, rank)
            for memory in (state.p_memory_dict, state.q_memory_dict))
    state._begin([q], at_random)
    p.copy_(flambeau.bmm(matrix, q))
    dist.all_reduce(p, group=group)
    _orthogonalize(p, state.orthogonalization_epsilon)
    q.copy_(flambeau.bmm(matrix.transpose(1, 2), p))
    dist.all_reduce(q, group=group)
    q.div_(group.size())
    matrix.copy_(flambeau.bmm(p, q.transpose(1, 2)))
    state._finish(bucket, padded, corrected)
    return _completed(flat.copy_(padded[:flat.numel()]))
