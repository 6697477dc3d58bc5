"""Items of plans, for values and pieces of tensors."""
from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, cast

import flambeau
from flambeau import Tensor
from flambeau.distributed._shard.metadata import ShardMetadata
from flambeau.distributed._shard.sharded_tensor import ShardedTensor
from flambeau.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)
from flambeau.distributed.checkpoint.planner import (
    LoadItemType,
    ReadItem,
    SavePlan,
    TensorWriteData,
    WriteItem,
    WriteItemType,
)
from flambeau.distributed.checkpoint.resharding import (
    _check_shard_metadata_pair_overlap,
    _shards_get_overlap_region_wrt_saved_tensor,
)
from flambeau.distributed.tensor import DTensor
from flambeau.distributed.tensor._utils import compute_local_shape_and_global_offset

__all__ = ["create_read_items_for_chunk_list"]


def _compare_save_plans(plan: SavePlan, other_plan: SavePlan) -> bool:
    """Do two plans write the same?"""
    if plan.usable != other_plan.usable or len(plan.items) != len(other_plan.items):
        return False
    for item, other in zip(plan.items, other_plan.items):
        if item.type != other.type or item.tensor_data != other.tensor_data:
            return False
        ours, theirs = item.index, other.index
        if (ours.fqn, ours.offset, ours.index) != (theirs.fqn, theirs.offset, theirs.index):
            return False
    return True


def _contains_usable_plan(delta_plans: list[SavePlan]) -> bool:
    """Has any process a new plan?"""
    return any(plan and plan.usable for plan in delta_plans)


def _merge_delta_local_plans(cached_plans: list[SavePlan],
                             delta_plans: list[SavePlan]) -> list[SavePlan]:
    """New plans, and the old ones of processes that have none."""
    return [new if new and new.usable else old for old, new in zip(cached_plans, delta_plans)]


# ---- pieces -------------------------------------------------------------------------------------

def _create_chunk_from_tensor(tensor: Tensor) -> ChunkStorageMetadata:
    """A whole tensor as a piece."""
    return ChunkStorageMetadata(flambeau.Size([0] * len(tensor.size())), tensor.size())


def _chunk_for_shard(shard_md: ShardMetadata) -> ChunkStorageMetadata:
    return ChunkStorageMetadata(flambeau.Size(shard_md.shard_offsets),
                                flambeau.Size(shard_md.shard_sizes))


def _create_chunk_from_dtensor(tensor: DTensor) -> ChunkStorageMetadata:
    sizes, offsets = compute_local_shape_and_global_offset(
        tensor.shape, tensor.device_mesh, tensor.placements)
    return ChunkStorageMetadata(flambeau.Size(offsets), flambeau.Size(sizes))


def _create_chunk_list(tensor: Tensor) -> list[ChunkStorageMetadata]:
    """The pieces that this process has of a tensor."""
    if hasattr(tensor, "__create_chunk_list__"):
        return tensor.__create_chunk_list__()
    if isinstance(tensor, ShardedTensor):
        return [_chunk_for_shard(shard.metadata) for shard in tensor.local_shards()]
    if isinstance(tensor, DTensor):
        return [_create_chunk_from_dtensor(tensor)]
    if isinstance(tensor, Tensor):
        return [_create_chunk_from_tensor(tensor)]
    raise ValueError("Unsupported Type, expecting one of [Tensor, DTensor, ShardedTensor] "
                     f",but got {type(tensor)}")


# ---- writing ------------------------------------------------------------------------------------

def _sharded_tensor_metadata(sharded_tensor: ShardedTensor,
                             shard_md: ShardMetadata) -> TensorWriteData:
    ours = sharded_tensor.metadata().tensor_properties
    return TensorWriteData(
        _chunk_for_shard(shard_md),
        TensorProperties(ours.dtype, ours.layout, ours.requires_grad, ours.memory_format,
                         ours.pin_memory),
        sharded_tensor.metadata().size)


def _create_write_items_for_dtensor(fqn: str, tensor: DTensor) -> WriteItem:
    chunk = _create_chunk_from_dtensor(tensor)
    return WriteItem(MetadataIndex(fqn, chunk.offsets), WriteItemType.SHARD,
                     tensor_data=TensorWriteData(
                         chunk, TensorProperties.create_from_tensor(tensor.to_local()),
                         tensor.size()))


def _create_write_item_for_shard(fqn: str, sharded_tensor: ShardedTensor,
                                 shard_md: ShardMetadata) -> WriteItem:
    return WriteItem(MetadataIndex(fqn, flambeau.Size(shard_md.shard_offsets)),
                     WriteItemType.SHARD,
                     tensor_data=_sharded_tensor_metadata(sharded_tensor, shard_md))


def _create_write_item_for_tensor(fqn: str, tensor: Tensor) -> WriteItem:
    chunk = _create_chunk_from_tensor(tensor)
    return WriteItem(MetadataIndex(fqn, chunk.offsets), WriteItemType.TENSOR,
                     tensor_data=TensorWriteData(
                         chunk, TensorProperties.create_from_tensor(tensor), tensor.size()))


def _create_write_item_for_bytesio(fqn: str, bytes: Any) -> WriteItem:
    return WriteItem(MetadataIndex(fqn), WriteItemType.BYTE_IO)


def _create_write_items(fqn: str, object: Any) -> list[WriteItem]:
    """What is to be written of a value."""
    if hasattr(object, "__create_write_items__"):
        return object.__create_write_items__(fqn, object)
    if isinstance(object, DTensor):
        return [_create_write_items_for_dtensor(fqn, object)]
    if isinstance(object, ShardedTensor):
        return [_create_write_item_for_shard(fqn, object, shard.metadata)
                for shard in object.local_shards()]
    if isinstance(object, Tensor):
        return [_create_write_item_for_tensor(fqn, object)]
    return [_create_write_item_for_bytesio(fqn, object)]


def _create_default_metadata_only_plan(state_dict: dict[str, Any]) -> SavePlan:
    """A plan of all that all processes have together."""
    requests = []
    for fqn, value in state_dict.items():
        if isinstance(value, ShardedTensor):
            requests += [_create_write_item_for_shard(fqn, value, shard)
                         for shard in value.metadata().shards_metadata]
        else:
            requests += _create_write_items(fqn, value)
    return SavePlan(requests)


# ---- reading ------------------------------------------------------------------------------------

def _create_read_item_for_byteio(dest_index: MetadataIndex, dest_offset: int,
                                 storage_index: MetadataIndex, storage_offset: int,
                                 length: int) -> ReadItem:
    return ReadItem(LoadItemType.BYTE_IO, dest_index, flambeau.Size((dest_offset,)),
                    storage_index, flambeau.Size((storage_offset,)), flambeau.Size((length,)))


def _create_read_item_for_tensor(dest_index: MetadataIndex, dest_offsets: Any,
                                 storage_index: MetadataIndex, storage_offsets: Any,
                                 lengths: Any) -> ReadItem:
    return ReadItem(LoadItemType.TENSOR, dest_index, flambeau.Size(dest_offsets), storage_index,
                    flambeau.Size(storage_offsets), flambeau.Size(lengths))


def create_read_items_for_chunk_list(fqn: str, checkpoint_md: TensorStorageMetadata,
                                     local_chunks: list[ChunkStorageMetadata]) -> list[ReadItem]:
    """What is to be read for pieces of a tensor: parts of the pieces that were saved.

    >>> def piece(begin, size):
    ...     return ChunkStorageMetadata(flambeau.Size([begin]), flambeau.Size([size]))
    >>> saved = TensorStorageMetadata(TensorProperties(), flambeau.Size([4]),
    ...                               [piece(0, 2), piece(2, 2)])
    >>> [tuple(item.lengths) for item in create_read_items_for_chunk_list("w", saved,
    ...                                                                  [piece(0, 3)])]
    [(2,), (1,)]
    """
    items = []
    for wanted_number, wanted in enumerate(local_chunks):
        for saved_number, saved in enumerate(checkpoint_md.chunks):
            if not _check_shard_metadata_pair_overlap(wanted, saved):
                continue
            parts = _shards_get_overlap_region_wrt_saved_tensor(saved, wanted)
            items.append(_create_read_item_for_tensor(
                MetadataIndex(fqn, wanted.offsets, wanted_number), [part[2] for part in parts],
                MetadataIndex(fqn, saved.offsets, saved_number), [part[1] for part in parts],
                [part[3] for part in parts]))
    return items


def _create_read_items(fqn: str, md: Any, obj: Any) -> list[ReadItem]:
    """What is to be read for a value."""
    if isinstance(md, BytesStorageMetadata):
        return [_create_read_item_for_byteio(MetadataIndex(fqn), 0, MetadataIndex(fqn), 0, 0)]
    try:
        chunks = _create_chunk_list(obj)
    except ValueError as error:
        raise ValueError(f"Invalid checkpoint metadata for {fqn}, expected BytesStorageMetadata "
                         f"but found {type(md)}") from error
    return create_read_items_for_chunk_list(fqn, cast(TensorStorageMetadata, md), chunks)


def _init_state_dict(state_dict: dict[str, Any]) -> Any:
    """Give tensors without values, which are on `meta`, memory on the CPU; in place."""
    def tensor(value: Tensor) -> Any:
        if value.device != flambeau.device("meta"):
            return value
        return flambeau.empty_like(value, device=flambeau.device("cpu"))

    def dtensor(value: DTensor) -> Any:
        if value.device != flambeau.device("meta"):
            return value
        local = flambeau.empty_like(value.to_local(), device=flambeau.device("cpu"))
        return DTensor.from_local(local, device_mesh=value.device_mesh,
                                  placements=value.placements, shape=value.size(),
                                  stride=value.stride())

    def sharded(value: Any) -> Any:
        if value.local_shards() and value.local_shards()[0].tensor.device.type == "meta":
            raise RuntimeError(f"Found unsupported type {type(value)} for meta device loading.")
        return value
    _iterate_state_dict(state_dict, dtensor, sharded, tensor)
    return state_dict


def _iterate_state_dict(iter_object: Any, dtensor_func: Callable[..., Any],
                        sharded_tensor_func: Callable[..., Any],
                        tensor_func: Callable[..., Any]) -> Any:
    """Replace the tensors in nested dicts and lists, in place, by what functions make of them."""
    functions = dtensor_func, sharded_tensor_func, tensor_func
    if isinstance(iter_object, DTensor):
        return dtensor_func(iter_object)
    if isinstance(iter_object, ShardedTensor):
        return sharded_tensor_func(iter_object)
    if isinstance(iter_object, Tensor):
        return tensor_func(iter_object)
    if isinstance(iter_object, (int, float, str, bytes, io.BytesIO)) or iter_object is None:
        return iter_object
    if isinstance(iter_object, dict):
        for key, value in iter_object.items():
            iter_object[key] = _iterate_state_dict(value, *functions)
        return iter_object
    if isinstance(iter_object, (list, tuple)):
        found = [_iterate_state_dict(value, *functions) for value in iter_object]
        return tuple(found) if isinstance(iter_object, tuple) else found
    return iter_object
