"""Sizes of the pieces that processes have."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flambeau.distributed.tensor.placement_types import Placement, Shard

__all__ = ["compute_local_shape_and_global_offset"]


def compute_local_shape_and_global_offset(
        global_shape: Sequence[int], mesh: Any, placements: Sequence[Placement]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape of this process's piece of a tensor, and where in the whole it begins."""
    shape, offset = list(global_shape), [0] * len(global_shape)
    for at, placement in enumerate(placements):
        if isinstance(placement, Shard):
            size, start = Shard.local_shard_size_and_offset(
                shape[placement.dim], mesh.size(at), mesh.get_coordinate()[at])
            shape[placement.dim] = size
            offset[placement.dim] += start
    return tuple(shape), tuple(offset)
