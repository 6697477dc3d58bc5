"""How a tensor is cut into pieces, and where they are."""
from __future__ import annotations

import functools
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flambeau import Tensor
from flambeau.distributed._shard.metadata import ShardMetadata
from flambeau.distributed._shard.op_registry_utils import _decorator_func
from flambeau.distributed._shard.sharding_spec._internals import (
    check_tensor,
    get_chunked_dim_size,
    get_split_size,
    validate_non_overlapping_shards_metadata,
)
from flambeau.distributed.remote_device import _remote_device


class PlacementSpec(ABC):  # noqa: B024
    """Where something is."""


@dataclass
class DevicePlacementSpec(PlacementSpec):
    """On a device of some process."""
    device: _remote_device

    def __post_init__(self) -> None:
        if not isinstance(self.device, _remote_device):
            self.device = _remote_device(self.device)


class ShardingSpec(ABC):
    """How a tensor is cut into pieces."""

    @abstractmethod
    def build_metadata(self, tensor_sizes: Any, tensor_properties: Any) -> Any:
        """The `ShardedTensorMetadata` of a tensor of this shape and type."""

    @abstractmethod
    def shard(self, tensor: Tensor, src_rank: int = 0, process_group: Any = None) -> Any:
        """The pieces of the tensor of process `src_rank`, as a `ShardedTensor`."""


_CUSTOM_SHARDING_SPEC_OPS: dict[str, dict[Callable[..., Any], Callable[..., Any]]] = {}


def _spec_name(sharding_spec: Any) -> str:
    cls = sharding_spec if isinstance(sharding_spec, type) else type(sharding_spec)
    return cls.__qualname__


def _has_custom_op(sharding_spec: ShardingSpec, op: Any) -> bool:
    """Is there a function for this op on tensors that are cut in this way?"""
    return op in _CUSTOM_SHARDING_SPEC_OPS.get(_spec_name(sharding_spec), ())


def _dispatch_custom_op(sharding_spec: ShardingSpec, op: Callable[..., Any], types: Any, args: Any,
                        kwargs: Any, process_group: Any) -> Any:
    """Call that function."""
    if not _has_custom_op(sharding_spec, op):
        raise RuntimeError(f"Custom op: {op} not registered for {_spec_name(sharding_spec)}")
    function = _CUSTOM_SHARDING_SPEC_OPS[_spec_name(sharding_spec)][op]
    return function(types, args, kwargs, process_group)


def custom_sharding_spec_op(sharding_spec_class: type, func: Callable[..., Any]) -> Any:
    """A decorator: the function stands for the op `func` on tensors that are cut in this way."""
    table = _CUSTOM_SHARDING_SPEC_OPS.setdefault(_spec_name(sharding_spec_class), {})
    return functools.partial(_decorator_func, op=func, op_table=table)


@dataclass
class EnumerableShardingSpec(ShardingSpec):
    """Pieces that are listed one by one.

    >>> spec = EnumerableShardingSpec([ShardMetadata([0], [2], "rank:0/cpu"),
    ...                                ShardMetadata([2], [3], "rank:1/cpu")])
    >>> len(spec.shards)
    2
    """
    shards: list[ShardMetadata]

    def __post_init__(self) -> None:
        if not self.shards:
            raise ValueError(f"Empty shard list provided: {self.shards}")
        rank = -1
        for shard in self.shards:
            if rank not in (-1, len(shard.shard_offsets)):
                raise ValueError(f"Found inconsistent ranks for shards: {rank} and "
                                 f"{len(shard.shard_offsets)}")
            rank = len(shard.shard_offsets)
        validate_non_overlapping_shards_metadata(self.shards)

    def build_metadata(self, tensor_sizes: Any, tensor_properties: Any) -> Any:
        from flambeau.distributed._shard.sharded_tensor.metadata import ShardedTensorMetadata
        check_tensor(self.shards, tensor_sizes)
        return ShardedTensorMetadata(self.shards, tensor_sizes, tensor_properties)

    def shard(self, tensor: Tensor, src_rank: int = 0, process_group: Any = None) -> Any:
        raise NotImplementedError("EnumerableShardingSpec.shard not implemented yet!")


def _infer_sharding_spec_from_shards_metadata(shards_metadata: list[ShardMetadata]
                                              ) -> ShardingSpec:
    """The way in which a tensor has been cut: in equal pieces along one dimension if it is so."""
    from flambeau.distributed._shard.sharding_spec.chunk_sharding_spec import ChunkShardingSpec
    placements, by_offset = [], {}
    cut, whole = None, list(shards_metadata[0].shard_sizes)
    for shard in shards_metadata:
        placements.append(shard.placement)
        dims = [dim for dim, offset in enumerate(shard.shard_offsets) if offset]
        if len(dims) > 1 or (dims and cut not in (None, dims[0])):
            return EnumerableShardingSpec(shards=shards_metadata)
        cut = dims[0] if dims else cut
        by_offset[tuple(shard.shard_offsets)] = shard
    if cut is None:
        return EnumerableShardingSpec(shards=shards_metadata)
    whole[cut] = sum(shard.shard_sizes[cut] for shard in shards_metadata)
    in_order = sorted(shards_metadata, key=lambda shard: shard.shard_offsets[cut])
    split = get_split_size(whole[cut], len(in_order))
    sizes = [get_chunked_dim_size(whole[cut], split, i) for i in range(len(in_order))]
    if sizes != [shard.shard_sizes[cut] for shard in in_order]:
        return EnumerableShardingSpec(shards=shards_metadata)
    return ChunkShardingSpec(dim=cut, placements=list(map(operator.attrgetter("placement"),
                                                          in_order)))
