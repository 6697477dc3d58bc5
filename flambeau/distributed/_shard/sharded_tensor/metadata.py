"""What is known of a sharded tensor: its pieces, its shape and its type."""
from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import flambeau
from flambeau.distributed._shard.metadata import ShardMetadata
from flambeau.distributed._tensor_properties import Properties


class MEM_FORMAT_ENCODING(Enum):
    """Memory formats, as numbers in pickles."""
    TORCH_CONTIGUOUS_FORMAT = 0
    TORCH_CHANNELS_LAST = 1
    TORCH_PRESERVE_FORMAT = 2


@dataclass
class TensorProperties(Properties):
    """The type and layout of a tensor."""
    _encoding = MEM_FORMAT_ENCODING


@dataclass
class ShardedTensorMetadata:
    """The pieces of a sharded tensor, its shape and its type."""
    shards_metadata: list[ShardMetadata] = field(default_factory=list)
    size: flambeau.Size = field(default=flambeau.Size([]))
    tensor_properties: TensorProperties = field(default_factory=TensorProperties)
