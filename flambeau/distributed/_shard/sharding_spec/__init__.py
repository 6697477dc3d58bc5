"""How a tensor is cut into pieces, and where they are."""
from flambeau.distributed._shard.metadata import ShardMetadata
from flambeau.distributed._shard.sharding_spec.api import (
    DevicePlacementSpec,
    EnumerableShardingSpec,
    PlacementSpec,
    ShardingSpec,
    _infer_sharding_spec_from_shards_metadata,
)
from flambeau.distributed._shard.sharding_spec.chunk_sharding_spec import ChunkShardingSpec
