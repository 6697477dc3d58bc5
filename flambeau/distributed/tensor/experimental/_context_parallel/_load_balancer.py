"""Which parts of a sequence a process has, so that all have as much to do.

In causal attention the end of a sequence attends to much, its beginning to little.
"""
from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.distributed.tensor.experimental._context_parallel import _options


class _LoadBalancer(ABC):
    """An order of a sequence, of which processes get equal parts."""

    @abstractmethod
    def _generate_indices(self, restore: bool = False) -> Tensor | None:
        """The order, a row (or one for each sequence of a batch); with `restore`, where each place
        of the sequence has gone."""


class _HeadTailLoadBalancer(_LoadBalancer):
    """Of 2n chunks, process i has the i-th from the front and the i-th from the end.

    >>> _HeadTailLoadBalancer(8, 2, "cpu")._generate_indices().tolist()
    [[0, 1, 6, 7, 2, 3, 4, 5]]
    """

    def __init__(self, seq_length: int, world_size: int, device: Any):
        self.seq_length, self.world_size, self.device = seq_length, world_size, device

    def _generate_indices(self, restore: bool = False) -> Tensor:
        assert self.seq_length % (2 * self.world_size) == 0
        order = _head_and_tail(self.seq_length, self.world_size, self.device)
        # Of the type in which PyTorch gives it.
        return (order.argsort() if restore else order.to(flambeau.int32)).unsqueeze(0)


def _head_and_tail(length: int, world_size: int, device: Any) -> Tensor:
    chunks = flambeau.arange(length, device=device).chunk(2 * world_size)
    return flambeau.cat([chunk for i in range(world_size)
                         for chunk in (chunks[i], chunks[-1 - i])])


class _PerDocumentHeadTailLoadBalancer(_LoadBalancer):
    """`_HeadTailLoadBalancer` of each of the documents that are packed into one sequence; for
    several sequences, lists of their documents' lengths.

    >>> _PerDocumentHeadTailLoadBalancer([[4, 8]], 2, "cpu")._generate_indices().tolist()
    [[0, 3, 1, 2, 4, 5, 10, 11, 6, 7, 8, 9]]
    """

    def __init__(self, seq_length_per_doc: list[list[int]], world_size: int, device: Any):
        self.seq_length_per_doc = seq_length_per_doc
        self.world_size, self.device = world_size, device

    def _generate_indices(self, restore: bool = False) -> Tensor:
        return flambeau.stack([self._generate_indices_for_batch(lengths, restore)
                               for lengths in self.seq_length_per_doc])

    def _generate_indices_for_batch(self, seq_length_per_doc: list[int], restore: bool) -> Tensor:
        """The order of one sequence."""
        orders, start = [], 0
        for length in seq_length_per_doc:
            assert length % (2 * self.world_size) == 0
            orders.append(_head_and_tail(length, self.world_size, self.device) + start)
            start += length
        whole = flambeau.cat(orders)
        return whole.argsort() if restore else whole


class _PTRRLoadBalancer(_LoadBalancer):
    """Blocks of queries by how long they take, the longest first, dealt out in turns that change
    their direction; of a mask of `flex_attention`."""

    def __init__(self, block_mask: Any, world_size: int):
        self.block_mask, self.world_size = block_mask, world_size

    @staticmethod
    def ptrr_scheduling(process_time: Tensor, group_size: int) -> Tensor:
        """Which tasks each of a group gets, a row of each, by how long tasks take."""
        count = process_time.numel()
        if count % group_size:
            raise NotImplementedError(f"num_tasks {count} must be divisible by group_size "
                                      f"{group_size}")
        order = flambeau.argsort(process_time, descending=True, stable=True)
        turns = order.view(-1, group_size).clone()
        turns[1::2] = turns[1::2].flip(1)
        return turns.t().sort(1).values

    def _generate_indices(self, restore: bool = False) -> Tensor:
        mask = self.block_mask
        times = mask.kv_num_blocks if mask.full_kv_num_blocks is None else \
            mask.kv_num_blocks + mask.full_kv_num_blocks
        if times.shape[1] != 1:
            raise NotImplementedError("PTRR load balancing of masks that differ among heads")
        block, length = mask.BLOCK_SIZE[0], mask.seq_lengths[0]
        rows = []
        for time in times[:, 0]:
            tasks = self.ptrr_scheduling(time, self.world_size).reshape(-1)
            order = flambeau.arange(length, device=time.device).view(-1, block)[tasks].reshape(-1)
            rows.append(order.argsort() if restore else order)
        return flambeau.stack(rows)


def _create_default_load_balancer(seq_length: int, world_size: int, device: Any
                                  ) -> _LoadBalancer | None:
    """That of causal attention, where it is wanted and fits."""
    if _options._cp_options.enable_load_balance and seq_length % (2 * world_size) == 0:
        return _HeadTailLoadBalancer(seq_length, world_size, device)
    return None
