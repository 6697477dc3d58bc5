"""States of optimizers of sharded models."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.distributed import distributed_c10d as dist
from flambeau.distributed._shard.sharded_tensor import Shard, ShardedTensor
from flambeau.distributed._shard.sharding_spec.chunk_sharding_spec import ChunkShardingSpec
from flambeau.distributed.checkpoint._nested_dict import unflatten_state_dict
from flambeau.distributed.checkpoint.default_planner import DefaultLoadPlanner
from flambeau.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    TensorProperties,
)
from flambeau.distributed.checkpoint.planner import LoadPlan, LoadPlanner
from flambeau.distributed.checkpoint.planner_helpers import (
    _create_read_items,
    create_read_items_for_chunk_list,
)
from flambeau.distributed.checkpoint.state_dict_loader import load_state_dict
from flambeau.distributed.checkpoint.storage import StorageReader
from flambeau.distributed.checkpoint.utils import _element_wise_add, _element_wise_sub
from flambeau.distributed.tensor import DTensor

__all__ = ["load_sharded_optimizer_state_dict"]


def _gen_rank_device(global_rank: int, device_type: str = "cuda") -> str:
    return "cpu"


def _create_colwise_spec(pg: Any = None) -> ChunkShardingSpec:
    """Equal pieces along the first dimension, one for each process."""
    size = dist.get_world_size(pg)
    ranks = range(size) if pg is None else dist.get_process_group_ranks(pg)
    return ChunkShardingSpec(dim=0, placements=[f"rank:{rank}/cpu" for rank in ranks])


def _is_nested_tensor(val: Tensor) -> bool:
    """Is this a sharded tensor whose piece is itself one?"""
    if isinstance(val, ShardedTensor):
        shards = val.local_shards()
        return bool(shards) and isinstance(shards[0].tensor, (ShardedTensor, DTensor))
    return isinstance(val, DTensor) and isinstance(val.to_local(), (ShardedTensor, DTensor))


def _alloc_tensor(props: TensorProperties, size: Sequence[int],
                  device_type: str = "cuda") -> Tensor:
    return flambeau.empty(tuple(size), dtype=props.dtype, layout=props.layout,
                          requires_grad=props.requires_grad)


def _get_state_dict_2d_layout(state_dict: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """Where each value lies in the whole, and its size; and the group of what is sharded twice."""
    layout: dict[str, Any] = {}
    group = None
    for key, value in state_dict.items():
        layout[key] = None, value.size()
        if _is_nested_tensor(value):
            shards = value.local_shards()
            assert len(shards) == 1, "Cannot handle ST with multiple shards"
            layout[key] = shards[0].metadata.shard_offsets, shards[0].metadata.shard_sizes
            group = shards[0].tensor._process_group
    return layout, group


class _ReaderWithOffset(DefaultLoadPlanner):
    """Reads pieces that lie elsewhere in the whole."""

    def __init__(self, fqn_to_offset: dict[str, Sequence[int]]):
        super().__init__()
        self.fqn_to_offset = fqn_to_offset
        self.metadata, self.state_dict = None, {}
        self.translation: dict[str, Any] = {}

    def create_local_plan(self) -> LoadPlan:
        """What is to be read for each value."""
        requests = []
        self.translation = {}
        assert self.metadata is not None
        for fqn, value in self.state_dict.items():
            about: Any = self.metadata.state_dict_metadata[fqn]
            if not isinstance(value, ShardedTensor) or fqn not in self.fqn_to_offset:
                requests += _create_read_items(fqn, about, value)
                continue
            offset = self.fqn_to_offset[fqn]
            (shard,) = value.local_shards()
            chunks = [ChunkStorageMetadata(
                flambeau.Size(_element_wise_add(shard.metadata.shard_offsets, offset)),
                flambeau.Size(shard.metadata.shard_sizes))]
            for item in create_read_items_for_chunk_list(fqn, about, chunks):
                assert item.dest_index.offset is not None
                original = type(item.dest_index)(
                    item.dest_index.fqn, _element_wise_sub(item.dest_index.offset, offset),
                    item.dest_index.index)
                self.translation[item.dest_index] = original  # type: ignore[index]
                requests.append(item)
        return LoadPlan(requests)

    def lookup_tensor(self, index: Any) -> Tensor:
        """The piece of an index."""
        return super().lookup_tensor(self.translation.get(index, index))


def load_sharded_optimizer_state_dict(model_state_dict: dict[str, Any], optimizer_key: str,
                                      storage_reader: StorageReader,
                                      planner: LoadPlanner | None = None) -> dict[str, Any]:
    """The state of an optimizer from a checkpoint, in pieces like those of the model's state
    `model_state_dict`; what is not in pieces there is cut along the first dimension.

    >>> load_sharded_optimizer_state_dict(model_state, "optimizer", reader)  # doctest: +SKIP
    """
    about = storage_reader.read_metadata()
    layout, group = _get_state_dict_2d_layout(model_state_dict)
    sharding = _create_colwise_spec(group)
    state: dict[str, Any] = {}
    offsets: dict[str, Sequence[int]] = {}
    for key, value in about.state_dict_metadata.items():
        path = about.planner_data[key]
        if path[0] != optimizer_key:
            continue
        if isinstance(value, BytesStorageMetadata):
            state[key] = "<bytes_io>"
            continue
        if value.size.numel() == 1:
            state[key] = _alloc_tensor(value.properties, value.size)
            continue
        spec_key = path[2] if len(path) > 2 else ""
        shard_offset, size = layout.get(spec_key, (None, value.size))
        of_whole = sharding.build_metadata(flambeau.Size(size), value.properties)
        rank = dist.get_rank(group)
        shards = [Shard(_alloc_tensor(value.properties, shard.shard_sizes), shard)
                  for shard in of_whole.shards_metadata if shard.placement.rank() == (
                      rank if group is None else dist.get_global_rank(group, rank))]
        state[key] = ShardedTensor._init_from_local_shards_and_global_metadata(
            shards, of_whole, process_group=group)
        if spec_key in layout and shard_offset is not None:
            offsets[key] = shard_offset
    load_state_dict(state_dict=state, storage_reader=storage_reader,
                    planner=_ReaderWithOffset(offsets) if offsets else planner)
    return unflatten_state_dict(state, about.planner_data)
