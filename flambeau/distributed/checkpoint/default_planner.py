"""`DefaultSavePlanner` and `DefaultLoadPlanner`: every value of the state, tensors in pieces."""
from __future__ import annotations

import dataclasses
import io
import logging
import math
from collections import ChainMap
from typing import Any, cast

import flambeau
from flambeau import Tensor
from flambeau.distributed.checkpoint._dedup_save_plans import dedup_save_plans
from flambeau.distributed.checkpoint._nested_dict import FLATTEN_MAPPING, flatten_state_dict
from flambeau.distributed.checkpoint._sharded_tensor_utils import _flatten_sharded_tensors
from flambeau.distributed.checkpoint._traverse import set_element
from flambeau.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorStorageMetadata,
)
from flambeau.distributed.checkpoint.planner import (
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    WriteItem,
    WriteItemType,
)
from flambeau.distributed.checkpoint.planner_helpers import (
    _compare_save_plans,
    _contains_usable_plan,
    _create_default_metadata_only_plan,
    _create_read_items,
    _create_write_items,
    _init_state_dict,
    _merge_delta_local_plans,
)
from flambeau.distributed.checkpoint.utils import find_state_dict_object
from flambeau.distributed.tensor import DTensor

__all__ = ["DefaultLoadPlanner", "DefaultSavePlanner", "create_default_global_load_plan",
           "create_default_global_save_plan", "create_default_local_load_plan",
           "create_default_local_save_plan"]

logger = logging.getLogger(__name__)


class DefaultSavePlanner(SavePlanner):
    """Writes every value of the state: tensors as tensors, others as bytes.

    Nested dicts and lists become dotted names, unless `flatten_state_dict` is False. What several
    processes have is written by one: by the first with `dedup_save_to_lowest_rank`. With
    `enable_plan_caching` plans are only made anew where something has changed.
    """

    mappings: FLATTEN_MAPPING

    def __init__(self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True,
                 dedup_replicated_tensors: bool | None = None,
                 dedup_save_to_lowest_rank: bool = False, enable_plan_caching: bool = False):
        self.flatten_state_dict = flatten_state_dict
        self.flatten_sharded_tensors = flatten_sharded_tensors
        self.mappings = {}
        self.dedup_save_to_lowest_rank = dedup_save_to_lowest_rank
        if dedup_replicated_tensors is not None:
            logger.warning("DefaultSavePlanner's `dedup_replicated_tensors` argument is being "
                           "deprecated, and no longer has any effect. Please remove this argument "
                           "from your call.")
        self._cached_plans_key = type(self).__name__
        self._enable_plan_caching = enable_plan_caching

    def set_up_planner(self, state_dict: dict[str, Any], storage_meta: StorageMeta | None = None,
                       is_coordinator: bool = False) -> None:
        """Remember the state."""
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        if self.flatten_sharded_tensors:
            state_dict = _flatten_sharded_tensors(state_dict)
        self.state_dict, self.is_coordinator = state_dict, is_coordinator

    def create_local_plan(self) -> SavePlan:
        """An item for each value, or piece of a tensor."""
        plan = create_default_local_save_plan(self.state_dict, self.is_coordinator)
        if self.flatten_state_dict:
            plan = dataclasses.replace(plan, planner_data=self.mappings)
        self.plan = plan
        if self._enable_plan_caching:
            key, cache = self._cached_plans_key, SavePlanner._cached_save_plan
            if key in cache and _compare_save_plans(plan, cache[key]):
                return SavePlan([], usable=False)
            cache[key] = plan
        return plan

    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        """The plans without what is written twice, and the description of the whole."""
        if not self._enable_plan_caching:
            return self._global_plan(all_plans)
        key = self._cached_plans_key
        if key not in SavePlanner._cached_all_plans:
            plans, metadata = self._global_plan(all_plans)
            SavePlanner._cached_all_plans[key] = all_plans
        elif _contains_usable_plan(all_plans):
            merged = _merge_delta_local_plans(SavePlanner._cached_all_plans[key], all_plans)
            plans, metadata = self._global_plan(merged)
            SavePlanner._cached_all_plans[key] = merged
        else:
            return ([SavePlan([], usable=False)] * len(all_plans),
                    SavePlanner._cached_metadata[key])
        SavePlanner._cached_metadata[key] = metadata
        return plans, metadata

    def _global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        all_plans = dedup_save_plans(all_plans, self.dedup_save_to_lowest_rank)
        plans, metadata = create_default_global_save_plan(all_plans)
        if self.flatten_state_dict:
            merged = dict(ChainMap(*[p.planner_data or {} for p in reversed(plans)]))
            metadata = dataclasses.replace(metadata, planner_data=merged)
        wrong = _validate_global_plan(plans, metadata)
        if wrong:
            raise ValueError("Failed to validate global plan: " + "; ".join(wrong))
        self.global_plan, self.metadata = plans, metadata
        return plans, metadata

    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """The plan as it is."""
        if self._enable_plan_caching:
            key, cache = self._cached_plans_key, SavePlanner._cached_final_save_plan
            if new_plan.usable:
                cache[key] = new_plan
            new_plan = cache[key]
        self.plan = new_plan
        return new_plan

    def resolve_data(self, write_item: WriteItem) -> Tensor | io.BytesIO:
        """The value of an item, as it is written."""
        return self.transform_object(write_item, self.lookup_object(write_item.index))

    def lookup_object(self, index: MetadataIndex) -> Any:
        """The value, or the piece of a tensor, of an index."""
        return find_state_dict_object(self.state_dict, index)

    def transform_object(self, write_item: WriteItem, object: Any) -> Any:
        """The value as it is written."""
        if write_item.type == WriteItemType.BYTE_IO:
            stream = io.BytesIO()
            flambeau.save(object, stream)
            return stream
        return object.to_local() if isinstance(object, DTensor) else object


class DefaultLoadPlanner(LoadPlanner):
    """Reads a value for each of the state; tensors are filled in place.

    With `allow_partial_load` values may be missing in the checkpoint.
    """

    def __init__(self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True,
                 allow_partial_load: bool = False):
        self.flatten_state_dict = flatten_state_dict
        self.flatten_sharded_tensors = flatten_sharded_tensors
        self.original_state_dict: dict[str, Any] = {}
        self.mappings: FLATTEN_MAPPING = {}
        self.allow_partial_load = allow_partial_load

    def set_up_planner(self, state_dict: dict[str, Any], metadata: Metadata | None = None,
                       is_coordinator: bool = False) -> None:
        """Remember the state to fill."""
        _init_state_dict(state_dict)
        self.original_state_dict = state_dict
        if self.flatten_sharded_tensors:
            state_dict = _flatten_sharded_tensors(state_dict)
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        self.state_dict, self.metadata = state_dict, metadata
        self.is_coordinator = is_coordinator

    def create_local_plan(self) -> LoadPlan:
        """What is to be read for each value."""
        assert self.metadata is not None
        return create_default_local_load_plan(self.state_dict, self.metadata,
                                              not self.allow_partial_load)

    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        """The plans as they are."""
        return create_default_global_load_plan(global_plan)

    def finish_plan(self, new_plan: LoadPlan) -> LoadPlan:
        """The plan as it is."""
        return new_plan

    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Put the value into the state."""
        loaded = flambeau.load(value, weights_only=False)
        name = read_item.dest_index.fqn
        if self.flatten_state_dict:
            set_element(self.original_state_dict, self.mappings[name], loaded)
        else:
            self.state_dict[name] = loaded

    def resolve_tensor(self, read_item: ReadItem) -> Tensor:
        """The part of the state that an item fills."""
        return self.transform_tensor(read_item, self.lookup_tensor(read_item.dest_index))

    def commit_tensor(self, read_item: ReadItem, tensor: Tensor) -> None:
        """Nothing: the tensor is that of the state."""

    def lookup_tensor(self, index: MetadataIndex) -> Tensor:
        """The tensor, or the piece of one, of an index."""
        found = find_state_dict_object(self.state_dict, index)
        return found.to_local() if isinstance(found, DTensor) else found

    def transform_tensor(self, read_item: ReadItem, tensor: Tensor) -> Tensor:
        """The part of a tensor that an item fills."""
        from flambeau.distributed._shard._utils import narrow_tensor_by_index
        return narrow_tensor_by_index(tensor, read_item.dest_offsets, read_item.lengths)


class _EmptyStateDictLoadPlanner(DefaultLoadPlanner):
    """Reads all that is there, or what is under some names, into a state that is empty."""

    def __init__(self, keys: Any = None, *args: Any, **kwargs: Any):
        self.keys = keys
        super().__init__(*args, **kwargs)

    def _should_include_key(self, key: str, metadata: Metadata) -> bool:
        if self.keys is None or key in self.keys:
            return True
        path = (metadata.planner_data or {}).get(key, (key,))
        names = [".".join(map(str, path[:i + 1])) for i in range(len(path))]
        return any(name in self.keys for name in names)

    def set_up_planner(self, state_dict: dict[str, Any], metadata: Metadata | None = None,
                       is_coordinator: bool = False) -> None:
        """Make room for what is there."""
        assert not state_dict, "the state must be empty"
        assert metadata is not None
        for key, about in metadata.state_dict_metadata.items():
            if not self._should_include_key(key, metadata):
                continue
            value: Any = about
            if isinstance(about, TensorStorageMetadata):
                value = flambeau.empty(about.size, dtype=about.properties.dtype)
            if metadata.planner_data is not None and key in metadata.planner_data:
                set_element(state_dict, metadata.planner_data[key], value)
            else:
                state_dict[key] = value
        super().set_up_planner(state_dict, metadata, is_coordinator)


# ---- plans --------------------------------------------------------------------------------------

def create_default_local_load_plan(state_dict: dict[str, Any], metadata: Metadata,
                                   strict: bool = True) -> LoadPlan:
    """What a process reads for each value of its state."""
    requests = []
    for fqn, value in state_dict.items():
        if fqn not in metadata.state_dict_metadata:
            if strict:
                raise RuntimeError(f"Missing key in checkpoint state_dict: {fqn}.")
            continue
        about = metadata.state_dict_metadata[fqn]
        if isinstance(about, TensorStorageMetadata) and getattr(value, "size", None) is not None \
                and about.size != value.size():
            raise ValueError(f"Size mismatch between saved {about.size} and current: "
                             f"{value.size()} for {fqn}")
        if isinstance(value, DTensor) and value.device_mesh.get_coordinate() is None:
            continue
        requests += _create_read_items(fqn, about, value)
    return LoadPlan(requests)


def create_default_global_load_plan(all_plans: list[LoadPlan]) -> list[LoadPlan]:
    """The plans as they are."""
    return all_plans


def create_default_local_save_plan(state_dict: dict[str, Any], is_coordinator: bool) -> SavePlan:
    """What a process could write: its pieces, and all values that are in one piece."""
    requests = []
    for fqn, value in state_dict.items():
        if isinstance(value, DTensor) and value.device_mesh.get_coordinate() is None:
            continue
        requests += _create_write_items(fqn, value)
    return SavePlan(requests)


def create_default_global_save_plan(all_plans: list[SavePlan], rewrite_index_hints: bool = True
                                    ) -> tuple[list[SavePlan], Metadata]:
    """The plans, with the numbers of pieces, and the description of the whole."""
    about: dict[str, Any] = {}
    plans = []
    for plan in all_plans:
        items = []
        for item in plan.items:
            if item.type != WriteItemType.SHARD and item.index.fqn in about:
                raise AssertionError(f"{item.index.fqn} is written twice")
            if item.type == WriteItemType.BYTE_IO:
                about[item.index.fqn] = BytesStorageMetadata()
                items.append(item)
                continue
            data = item.tensor_data
            assert data is not None
            whole = cast(TensorStorageMetadata, about.setdefault(
                item.index.fqn, TensorStorageMetadata(data.properties, data.size, [])))
            if rewrite_index_hints:
                index = dataclasses.replace(item.index, index=len(whole.chunks))
                item = dataclasses.replace(item, index=index)
            items.append(item)
            assert data.chunk is not None, "Cannot create MD for tensor without bounds."
            whole.chunks.append(data.chunk)
        plans.append(dataclasses.replace(plan, items=items))
    return plans, Metadata(about)


def _create_default_local_metadata(state_dict: dict[str, Any]) -> Metadata:
    """The description of what all processes have together."""
    return create_default_global_save_plan([_create_default_metadata_only_plan(state_dict)])[1]


def _check_box_overlap(box0: ChunkStorageMetadata, box1: ChunkStorageMetadata) -> bool:
    """Have two pieces something in common?"""
    from flambeau.distributed.checkpoint.resharding import _check_shard_metadata_pair_overlap
    return _check_shard_metadata_pair_overlap(box0, box1)


def _check_box_bounds(outer_box_size: flambeau.Size, inner_box: ChunkStorageMetadata) -> bool:
    """Is a piece in a tensor of this size?"""
    return all(offset >= 0 and size >= 0 and offset + size <= whole for offset, size, whole in zip(
        inner_box.offsets, inner_box.sizes, outer_box_size))


def _validate_global_plan(global_plan: list[SavePlan], metadata: Metadata) -> list[str]:
    """What is wrong with the pieces of tensors: they must cover them once."""
    wrong = []
    for key, value in metadata.state_dict_metadata.items():
        if isinstance(value, BytesStorageMetadata) or not value.size.numel():
            continue
        volume = 0
        for i, piece in enumerate(value.chunks):
            if not _check_box_bounds(value.size, piece):
                wrong.append(f"key:{key} has out of bounds chunk: tensor-size:{value.size} "
                             f"chunk: {piece}")
            volume += math.prod(piece.sizes)
            wrong += [f"key:{key} has overlapping chunks: {piece} {other}"
                      for other in value.chunks[i + 1:] if _check_box_overlap(piece, other)]
        # a process alone may write the part of a tensor that it has
        if len(global_plan) > 1 and volume != value.size.numel():
            wrong.append(f"key:{key} invalid fill tensor-volume: {value.size.numel()} "
                         f"chunks-volume: {volume}")
    return wrong
