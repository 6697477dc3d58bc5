"""Plans of what each process writes and reads, and what makes them."""
from __future__ import annotations

import abc
import io
import operator
from dataclasses import dataclass
from enum import Enum, auto
from functools import reduce
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
)

__all__ = ["BytesIOWriteData", "LoadItemType", "LoadPlan", "LoadPlanner", "ReadItem", "SavePlan",
           "SavePlanner", "TensorWriteData", "WriteItem", "WriteItemType"]


class WriteItemType(Enum):
    """What is written: a whole tensor, a piece of one, or bytes."""
    TENSOR = auto()
    SHARD = auto()
    BYTE_IO = auto()


class LoadItemType(Enum):
    """What is read: a tensor or bytes."""
    TENSOR = auto()
    BYTE_IO = auto()


@dataclass(frozen=True)
class BytesIOWriteData:
    """What is known of bytes before they are written."""
    nbytes: int


@dataclass(frozen=True)
class TensorWriteData:
    """What is known of a tensor before it is written: which piece of it is, type and whole size."""
    chunk: ChunkStorageMetadata
    properties: TensorProperties
    size: flambeau.Size


@dataclass(frozen=True)
class WriteItem:
    """One value, or piece of a tensor, that is to be written."""
    index: MetadataIndex
    type: WriteItemType
    bytes_io_data: BytesIOWriteData | None = None
    tensor_data: TensorWriteData | None = None

    def tensor_storage_size(self) -> int | None:
        """How many bytes the tensor has; None for what is none."""
        if self.tensor_data is None:
            return None
        count = reduce(operator.mul, self.tensor_data.size, 1)
        return count * flambeau._utils._element_size(self.tensor_data.properties.dtype)


@dataclass(frozen=True)
class ReadItem:
    """One value, or piece of a tensor, that is to be read, and where it goes."""
    type: LoadItemType
    dest_index: MetadataIndex
    dest_offsets: flambeau.Size
    storage_index: MetadataIndex
    storage_offsets: flambeau.Size
    lengths: flambeau.Size


@dataclass(frozen=True)
class SavePlan:
    """All that a process writes."""
    items: list[WriteItem]
    storage_data: Any = None
    planner_data: Any = None
    usable: bool = True


@dataclass
class LoadPlan:
    """All that a process reads."""
    items: list[ReadItem]
    storage_data: Any = None
    planner_data: Any = None


class SavePlanner(abc.ABC):
    """Decides what is written, and as what. All processes have one; that of the coordinator sees
    the plans of all."""

    _cached_save_plan: dict[str, SavePlan] = {}
    _cached_final_save_plan: dict[str, SavePlan] = {}
    _cached_all_plans: dict[str, list[SavePlan]] = {}
    _cached_global_plan: dict[str, list[SavePlan]] = {}
    _cached_metadata: dict[str, Metadata] = {}

    @abc.abstractmethod
    def set_up_planner(self, state_dict: dict[str, Any], storage_meta: StorageMeta | None = None,
                       is_coordinator: bool = False) -> None:
        """Called first, with the state."""

    @abc.abstractmethod
    def create_local_plan(self) -> SavePlan:
        """What this process would write."""

    @abc.abstractmethod
    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        """What each process writes, and the description of the checkpoint; at the coordinator."""

    @abc.abstractmethod
    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """This process's part of the global plan."""

    @abc.abstractmethod
    def resolve_data(self, write_item: WriteItem) -> Tensor | io.BytesIO:
        """The tensor, or the bytes, of an item."""


class LoadPlanner:
    """Decides what is read, and where it goes. All processes have one."""

    @abc.abstractmethod
    def set_up_planner(self, state_dict: dict[str, Any], metadata: Metadata | None = None,
                       is_coordinator: bool = False) -> None:
        """Called first, with the state to fill and the description of the checkpoint."""

    @abc.abstractmethod
    def create_local_plan(self) -> LoadPlan:
        """What this process would read."""

    @abc.abstractmethod
    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        """What each process reads; at the coordinator."""

    @abc.abstractmethod
    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        """This process's part of the global plan."""

    @abc.abstractmethod
    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Take the bytes of an item."""

    def resolve_bytes(self, read_item: ReadItem) -> io.BytesIO:
        """Where the bytes of an item are read into."""
        raise NotImplementedError("LoadPlanner.resolve_bytes is not implemented")

    @abc.abstractmethod
    def resolve_tensor(self, read_item: ReadItem) -> Tensor:
        """The tensor into which an item is read."""

    @abc.abstractmethod
    def commit_tensor(self, read_item: ReadItem, tensor: Tensor) -> None:
        """Called when that tensor is filled."""
