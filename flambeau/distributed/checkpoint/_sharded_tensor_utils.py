"""Sharded tensors in sharded tensors."""
from __future__ import annotations

import copy
from typing import Any

from flambeau.distributed._shard.metadata import ShardMetadata
from flambeau.distributed._shard.sharded_tensor import Shard, ShardedTensor
from flambeau.distributed._shard.sharded_tensor.metadata import ShardedTensorMetadata
from flambeau.distributed.checkpoint._traverse import OBJ_PATH, set_element, traverse_state_dict
from flambeau.distributed.checkpoint.utils import _element_wise_add, _normalize_device_info


def _flatten_sharded_tensors(state_dict: dict[str, Any]) -> dict[str, Any]:
    """Let sharded tensors of which a piece is itself one be sharded once."""
    found: dict[str, Any] = {}

    def rewrite(path: OBJ_PATH, value: Any) -> None:
        if not isinstance(value, ShardedTensor) or not value.local_shards() or not isinstance(
                value.local_shards()[0].tensor, ShardedTensor):
            set_element(found, path, value)
            return
        (outer,) = value.local_shards()
        inner: Any = outer.tensor
        (own,) = inner.local_shards()
        offset = outer.metadata.shard_offsets
        rank = own.metadata.placement.rank()
        about = copy.deepcopy(value.metadata())
        device = _normalize_device_info(inner._get_preferred_device().type, 0)
        pieces = []
        for shard in inner.metadata().shards_metadata:
            pieces.append(ShardMetadata(_element_wise_add(shard.shard_offsets, offset),
                                        list(shard.shard_sizes),
                                        f"rank:{shard.placement.rank()}/{device}"))
        mine = next(piece for piece in pieces if piece.placement.rank() == rank)
        others = [piece for piece in about.shards_metadata
                  if piece.shard_offsets != outer.metadata.shard_offsets]
        set_element(found, path, ShardedTensor._init_from_local_shards_and_global_metadata(
            [Shard(own.tensor, mine)],
            ShardedTensorMetadata(others + pieces, value.size(), about.tensor_properties)))
    traverse_state_dict(state_dict, rewrite)
    return found
