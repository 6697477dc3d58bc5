"""Sharded tensors in sharded tensors."""
from __future__ import annotations

import flambeau as torch
from flambeau.distributed._shard.metadata import ShardMetadata
from flambeau.distributed._shard.sharded_tensor import (
    Shard,
    ShardedTensor,
    ShardedTensorMetadata,
    TensorProperties,
)
from flambeau.distributed.checkpoint._sharded_tensor_utils import _flatten_sharded_tensors


def sharded(tensor, size, *metas):
    """A sharded tensor of which this process has the first piece."""
    shards = [ShardMetadata(offsets, sizes, f"rank:{rank}/cpu")
              for rank, (offsets, sizes) in enumerate(metas)]
    about = ShardedTensorMetadata(shards, torch.Size(size), TensorProperties(torch.float32))
    return ShardedTensor._init_from_local_shards_and_global_metadata(
        [Shard(tensor, shards[0])], about)


def test_all_else_stays(alone):
    x = torch.ones(2)
    once = sharded(torch.ones(2, 2), (2, 2), ([0, 0], [2, 2]))
    state = {"x": x, "nested": {"n": 3, "list": [1, x]}, "once": once}
    found = _flatten_sharded_tensors(state)
    assert found == state and found["once"] is once and found["nested"] is not state["nested"]


def test_pieces_of_pieces_have_their_place_in_the_whole(alone):
    values = torch.arange(4.0).view(2, 2)
    inner = sharded(values, (2, 2), ([0, 0], [2, 2]))
    metadata = ShardMetadata([0, 0], [2, 2], "rank:0/cpu")
    outer = sharded(torch.zeros(2, 2), (2, 2), ([0, 0], [2, 2]))
    outer._local_shards = [Shard(inner, metadata)]
    found = _flatten_sharded_tensors({"w": outer})["w"]
    piece, = found.local_shards()
    assert piece.tensor is values and found.size() == (2, 2)
    assert list(piece.metadata.shard_offsets) == [0, 0]
    assert [list(m.shard_sizes) for m in found.metadata().shards_metadata] == [[2, 2]]
