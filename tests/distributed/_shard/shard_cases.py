"""Sharded tensors of one process, and the cuts of two."""
from __future__ import annotations

import pytest

from flambeau.distributed._shard import sharded_tensor as st
from flambeau.distributed._shard.metadata import ShardMetadata
from flambeau.distributed._shard.sharding_spec import ChunkShardingSpec

# PyTorch says so whenever an op meets a sharded tensor.
deprecated = pytest.mark.filterwarnings("ignore:Please use DTensor instead:FutureWarning")


def whole():
    """All of a tensor at the one process."""
    return ChunkShardingSpec(0, ["rank:0/cpu"])


def rows():
    return ChunkShardingSpec(0, ["rank:0/cpu", "rank:1/cpu"])


def columns(*ranks):
    return ChunkShardingSpec(1, [f"rank:{rank}/cpu" for rank in ranks])


def piece(tensor, *offsets, rank=0):
    return st.Shard.from_tensor_and_offsets(tensor, list(offsets), rank)


def about(offsets, sizes, rank=0):
    return ShardMetadata(list(offsets), list(sizes), f"rank:{rank}/cpu")
