"""Pieces of tensors."""
from __future__ import annotations

from collections.abc import Sequence

from flambeau import Tensor
from flambeau.distributed._shard.metadata import ShardMetadata

DEPRECATE_MSG = "Please use DTensor instead and we are deprecating ShardedTensor."


def narrow_tensor_by_index(tensor: Tensor, offsets: Sequence[int], sizes: Sequence[int]) -> Tensor:
    """The piece that begins at `offsets` and has `sizes`: a view.

    >>> narrow_tensor_by_index(flambeau.arange(6).view(2, 3), [0, 1], [2, 1]).flatten()
    tensor([1, 4])
    """
    for dim, (offset, size) in enumerate(zip(offsets, sizes)):
        if size < tensor.size(dim):
            tensor = tensor.narrow(dim, offset, size)
    return tensor


def narrow_tensor(tensor: Tensor, metadata: ShardMetadata) -> Tensor:
    """The piece that `metadata` describes: a view."""
    return narrow_tensor_by_index(tensor, metadata.shard_offsets, metadata.shard_sizes)
