"""Sharing out the elements of a pipe among processes."""
from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import Any

from flambeau.utils.data.datapipes._decorator import functional_datapipe
from flambeau.utils.data.datapipes._iter_steps import _length
from flambeau.utils.data.datapipes.datapipe import IterDataPipe

__all__ = ["SHARDING_PRIORITIES", "ShardingFilterIterDataPipe"]


class SHARDING_PRIORITIES(IntEnum):
    """Who shares out: the first comes first where several do."""

    DEFAULT = 1
    DISTRIBUTED = 2
    MULTIPROCESSING = 3


class _ShardingIterDataPipe(IterDataPipe):
    """A pipe that can be shared out."""

    def apply_sharding(self, num_of_instances: int, instance_id: int,
                       sharding_group: SHARDING_PRIORITIES) -> None:
        """Be number `instance_id` of that many."""
        raise NotImplementedError(f"{type(self).__name__}.apply_sharding")


@functional_datapipe("sharding_filter")
class ShardingFilterIterDataPipe(_ShardingIterDataPipe):
    """Each n-th element, where n is the number of processes that share the elements: all of them,
    if there is but one. Of several ways of sharing out, `sharding_group_filter` may choose one.

    >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
    >>> pipe = IterableWrapper(range(7)).sharding_filter()
    >>> pipe.apply_sharding(3, 1)
    >>> list(pipe)
    [1, 4]
    """

    def __init__(self, source_datapipe: IterDataPipe, sharding_group_filter: Any = None):
        self.source_datapipe = source_datapipe
        self.sharding_group_filter = sharding_group_filter
        self.groups: dict[int, tuple[int, int]] = {}
        self._update_num_of_instances()

    def apply_sharding(self, num_of_instances: int, instance_id: int,
                       sharding_group: SHARDING_PRIORITIES = SHARDING_PRIORITIES.DEFAULT) -> None:
        """Give the elements number `instance_id`, `instance_id + num_of_instances`, …"""
        if instance_id >= num_of_instances:
            raise ValueError(f"instance_id({instance_id}) should be smaller than "
                             f"num_of_instances({num_of_instances})")
        usual = SHARDING_PRIORITIES.DEFAULT
        if any((group == usual) != (sharding_group == usual) for group in self.groups):
            raise RuntimeError("ShardingFilter cannot mix DEFAULT and non DEFAULT groups")
        self.groups[sharding_group] = (num_of_instances, instance_id)
        self._update_num_of_instances()

    def _update_num_of_instances(self) -> None:
        """The group that comes first counts last: its number is the most significant digit."""
        self.num_of_instances, self.instance_id = 1, 0
        for group in sorted(self.groups, reverse=True):
            if self.sharding_group_filter in (None, group):
                count, place = self.groups[group]
                self.instance_id += self.num_of_instances * place
                self.num_of_instances *= count

    def __iter__(self) -> Iterator[Any]:
        for i, item in enumerate(self.source_datapipe):
            if i % self.num_of_instances == self.instance_id:
                yield item

    def __len__(self) -> int:
        whole, rest = divmod(_length(self, self.source_datapipe), self.num_of_instances)
        return whole + (self.instance_id < rest)
