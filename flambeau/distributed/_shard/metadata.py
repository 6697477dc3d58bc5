"""Where a piece of a sharded tensor lies in it, and at which process."""
from __future__ import annotations

from dataclasses import dataclass

import flambeau
from flambeau.distributed.remote_device import _remote_device


@dataclass
class ShardMetadata:
    """A piece begins at `shard_offsets`, has `shard_sizes`, and lies at `placement`.

    >>> ShardMetadata([2, 0], [2, 4], "rank:1/cpu").placement.rank()
    1
    """

    __slots__ = ["placement", "shard_offsets", "shard_sizes"]

    shard_offsets: list[int]
    shard_sizes: list[int]
    placement: _remote_device | None

    def __init__(self, shard_offsets: list[int], shard_sizes: list[int],
                 placement: str | _remote_device | None = None):
        self.shard_offsets, self.shard_sizes = shard_offsets, shard_sizes
        self.placement = _remote_device(placement) \
            if isinstance(placement, (str, flambeau.device)) else placement
        if len(shard_offsets) != len(shard_sizes):
            raise ValueError("shard_offsets and shard_sizes should have the same number of "
                             f"elements, found {len(shard_offsets)} and {shard_sizes} respectively")
        if any(offset < 0 for offset in shard_offsets):
            raise ValueError("shard_offsets should be >=0")
        if any(size < 0 for size in shard_sizes):
            raise ValueError("shard_sizes should be >= 0")

    def __hash__(self) -> int:
        return hash((*self.shard_offsets, *self.shard_sizes, self.placement))
