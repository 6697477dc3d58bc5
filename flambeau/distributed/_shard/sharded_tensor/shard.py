"""`Shard`: a piece of a sharded tensor that this process has."""
from __future__ import annotations

from dataclasses import dataclass

from flambeau import Tensor
from flambeau.distributed._shard.metadata import ShardMetadata
from flambeau.distributed.remote_device import _remote_device


@dataclass
class Shard:
    """A piece, and where in the whole it lies."""

    __slots__ = ["metadata", "tensor"]

    tensor: Tensor
    metadata: ShardMetadata

    def __post_init__(self) -> None:
        if list(self.tensor.size()) != self.metadata.shard_sizes:
            raise ValueError("Shard tensor size does not match with metadata.shard_lengths! Found "
                             f"shard tensor size: {list(self.tensor.size())}, "
                             f"metadata.shard_lengths: {self.metadata.shard_sizes}, ")
        placement = self.metadata.placement
        if placement is not None and placement.device() != self.tensor.device:
            raise ValueError("Local shard tensor device does not match with local Shard's "
                             f"placement! Found local shard tensor device: {self.tensor.device}, "
                             f"local shard metadata placement device: {placement.device()}")

    def __copy__(self) -> Shard:
        return Shard(self.tensor, self.metadata)

    @classmethod
    def from_tensor_and_offsets(cls, tensor: Tensor, shard_offsets: list[int],
                                rank: int) -> Shard:
        """The piece of process `rank` that begins at these offsets.

        >>> Shard.from_tensor_and_offsets(flambeau.ones(2), [3], 1).metadata
        ShardMetadata(shard_offsets=[3], shard_sizes=[2], placement=rank:1/cpu)
        """
        placement = _remote_device(f"rank:{rank}/{tensor.device}")
        return Shard(tensor, ShardMetadata(shard_offsets, list(tensor.size()), placement))
