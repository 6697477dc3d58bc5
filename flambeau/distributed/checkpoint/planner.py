"""Plans: what of a state is written, and what of a checkpoint is read."""
from __future__ import annotations

import enum
import io
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import flambeau
from flambeau import Tensor


class WriteItemType(enum.Enum):
    """What an item is written as."""
    TENSOR, SHARD, BYTE_IO = 1, 2, 3


class LoadItemType(enum.Enum):
    """What an item is read as."""
    TENSOR, BYTE_IO = 1, 2


@dataclass(frozen=True)
class MetadataIndex:
    """The name of a value, its place in a tensor that is cut, and its number."""
    fqn: str
    offset: Any = None
    index: int | None = field(hash=False, compare=False, default=None)


@dataclass
class TensorProperties:
    """The type of a tensor."""
    dtype: Any
    layout: Any = None
    requires_grad: bool = False
    pin_memory: bool = False


@dataclass
class TensorWriteData:
    """What is known of a tensor before it is written."""
    properties: TensorProperties
    size: Any


@dataclass
class WriteItem:
    """One value of a state that is to be written."""
    index: MetadataIndex
    type: WriteItemType
    tensor_data: TensorWriteData | None = None


@dataclass
class ReadItem:
    """One value of a checkpoint that is to be read."""
    type: LoadItemType
    dest_index: MetadataIndex
    storage_index: MetadataIndex


class _Plan:
    def __iter__(self) -> Any:
        return iter(self.items)


@dataclass
class SavePlan(_Plan):
    """All that this process writes."""
    items: list[WriteItem]
    storage_data: Any = None
    planner_data: Any = None


@dataclass
class LoadPlan(_Plan):
    """All that this process reads."""
    items: list[ReadItem]
    storage_data: Any = None
    planner_data: Any = None


class SavePlanner(ABC):
    """Decides what is written, and as what."""

    @abstractmethod
    def set_up_planner(self, state_dict: dict[str, Any], storage_meta: Any = None,
                       is_coordinator: bool = False) -> None:
        """Called first, with the state."""

    @abstractmethod
    def create_local_plan(self) -> SavePlan:
        """What this process writes."""

    @abstractmethod
    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Any]:
        """What all processes write, and the description of the checkpoint."""

    @abstractmethod
    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """This process's part of the global plan."""

    @abstractmethod
    def resolve_data(self, write_item: WriteItem) -> Any:
        """The tensor, or the bytes in an `io.BytesIO`, of an item."""


class LoadPlanner(ABC):
    """Decides what is read, and where it goes."""

    @abstractmethod
    def set_up_planner(self, state_dict: dict[str, Any], metadata: Any = None,
                       is_coordinator: bool = False) -> None:
        """Called first, with the state to fill and the description of the checkpoint."""

    @abstractmethod
    def create_local_plan(self) -> LoadPlan:
        """What this process reads."""

    @abstractmethod
    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        """What all processes read."""

    @abstractmethod
    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        """This process's part of the global plan."""

    @abstractmethod
    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Take the bytes of an item."""

    @abstractmethod
    def resolve_tensor(self, read_item: ReadItem) -> Tensor:
        """The tensor into which an item is read."""

    def commit_tensor(self, read_item: ReadItem, tensor: Tensor) -> None:  # noqa: B027
        """Called when that tensor is filled."""


class _Flatten:
    """Nested dicts and lists as one dict with dotted names."""

    @classmethod
    def names(cls, value: Any, path: tuple[Any, ...] = ()) -> dict[str, tuple[Any, ...]]:
        if isinstance(value, dict):
            parts = value.items()
        elif isinstance(value, (list, tuple)) and any(isinstance(v, (dict, list, tuple, Tensor))
                                                      for v in value):
            parts = enumerate(value)
        else:
            return {".".join(map(str, path)): path}
        found: dict[str, tuple[Any, ...]] = {}
        for key, part in parts:
            found |= cls.names(part, (*path, key))
        return found

    @staticmethod
    def at(state: Any, path: tuple[Any, ...]) -> Any:
        for key in path:
            state = state[key]
        return state


class DefaultSavePlanner(SavePlanner):
    """Writes every value of the state: tensors as tensors, others as bytes."""

    def __init__(self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True,
                 **options: Any):
        self.flatten_state_dict = flatten_state_dict

    def set_up_planner(self, state_dict: dict[str, Any], storage_meta: Any = None,
                       is_coordinator: bool = False) -> None:
        """Remember the state."""
        self.mappings = (_Flatten.names(state_dict) if self.flatten_state_dict
                         else {name: (name,) for name in state_dict})
        self.state_dict = {name: _Flatten.at(state_dict, path)
                           for name, path in self.mappings.items()}
        self.is_coordinator = is_coordinator

    def create_local_plan(self) -> SavePlan:
        """An item for each value."""
        items = []
        for name, value in self.state_dict.items():
            if isinstance(value, Tensor):
                about = TensorWriteData(TensorProperties(value.dtype, value.layout,
                                                         value.requires_grad), value.size())
                items.append(WriteItem(MetadataIndex(name), WriteItemType.TENSOR, about))
            else:
                items.append(WriteItem(MetadataIndex(name), WriteItemType.BYTE_IO))
        self.plan = SavePlan(items, planner_data=self.mappings)
        return self.plan

    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Any]:
        """The plans as they are; the description is what they hold."""
        return all_plans, {item.index.fqn: item for plan in all_plans for item in plan}

    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """The plan as it is."""
        self.plan = new_plan
        return new_plan

    def lookup_object(self, index: MetadataIndex) -> Any:
        """The value of that name."""
        return self.state_dict[index.fqn]

    def transform_object(self, write_item: WriteItem, object: Any) -> Any:
        """The value as it is written."""
        if write_item.type is WriteItemType.BYTE_IO:
            stream = io.BytesIO()
            flambeau.save(object, stream)
            return stream
        return object

    def resolve_data(self, write_item: WriteItem) -> Any:
        """The value of an item, as it is written."""
        return self.transform_object(write_item, self.lookup_object(write_item.index))


class DefaultLoadPlanner(LoadPlanner):
    """Reads a value for each of the state; tensors are filled in place."""

    def __init__(self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True,
                 allow_partial_load: bool = False):
        self.flatten_state_dict, self.allow_partial_load = flatten_state_dict, allow_partial_load

    def set_up_planner(self, state_dict: dict[str, Any], metadata: Any = None,
                       is_coordinator: bool = False) -> None:
        """Remember the state to fill."""
        self.original_state_dict, self.metadata = state_dict, metadata
        self.mappings = (_Flatten.names(state_dict) if self.flatten_state_dict
                         else {name: (name,) for name in state_dict})

    def create_local_plan(self) -> LoadPlan:
        """An item for each value that the checkpoint has."""
        items = []
        for name, path in self.mappings.items():
            if name not in self.metadata:
                if self.allow_partial_load:
                    continue
                raise RuntimeError(f"Missing key in checkpoint state_dict: {name}.")
            value = _Flatten.at(self.original_state_dict, path)
            kind = LoadItemType.TENSOR if isinstance(value, Tensor) else LoadItemType.BYTE_IO
            if kind is LoadItemType.TENSOR and self.metadata[name].tensor_data is not None:
                size = tuple(self.metadata[name].tensor_data.size)
                if size != tuple(value.size()):
                    raise ValueError(f"Size mismatch between saved {size} and current: "
                                     f"{tuple(value.size())} for {name}")
            items.append(ReadItem(kind, MetadataIndex(name), MetadataIndex(name)))
        return LoadPlan(items)

    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        """The plans as they are."""
        return global_plan

    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        """The plan as it is."""
        return central_plan

    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Put the value into the state."""
        *path, last = self.mappings[read_item.dest_index.fqn]
        _Flatten.at(self.original_state_dict, tuple(path))[last] = flambeau.load(
            value, weights_only=False)

    def resolve_tensor(self, read_item: ReadItem) -> Tensor:
        """The tensor of the state."""
        path = self.mappings[read_item.dest_index.fqn]
        return _Flatten.at(self.original_state_dict, path).detach()
