"""What `FullyShardedDataParallel` would ask of tensors that other processes share, too."""
from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from flambeau import Tensor

__all__ = ["FSDPExtensions"]


class FSDPExtensions(ABC):
    """How tensors of a kind are made flat, cut into pieces for a state dict, and put together."""

    @abstractmethod
    def pre_flatten_transform(self, tensor: Tensor) -> tuple[Tensor, Any | None]:
        """The local tensor, and what is needed to undo this."""

    @abstractmethod
    def post_unflatten_transform(self, tensor: Tensor, param_extension: Any) -> Tensor:
        """The tensor of a local one: undoes `pre_flatten_transform`."""

    @abstractmethod
    def chunk_tensor(self, tensor: Tensor, rank: int, world_size: int, num_devices_per_node: int,
                     pg: Any, device: Any = None) -> Tensor:
        """The piece of this process, as a `ShardedTensor`."""

    @abstractmethod
    def chunk_dtensor(self, tensor: Tensor, rank: int, device_mesh: Any) -> Tensor:
        """The piece of this process, as a `DTensor`."""

    @abstractmethod
    def pre_load_state_dict_transform(self, tensor: Tensor) -> tuple[Tensor, list[Any]]:
        """The sharded tensor to load, and its pieces here."""

    @abstractmethod
    def all_gather_dtensor(self, tensor: Any, parent_mesh: Any) -> Tensor:
        """The local tensor that data parallelism had cut into pieces."""
