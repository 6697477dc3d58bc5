"""What is known of a sharded tensor: its pieces, its shape and its type."""
from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.distributed._shard.metadata import ShardMetadata


class MEM_FORMAT_ENCODING(Enum):
    """Memory formats, as numbers in pickles."""
    TORCH_CONTIGUOUS_FORMAT = 0
    TORCH_CHANNELS_LAST = 1
    TORCH_PRESERVE_FORMAT = 2


_FORMATS = {MEM_FORMAT_ENCODING.TORCH_CONTIGUOUS_FORMAT: flambeau.contiguous_format,
            MEM_FORMAT_ENCODING.TORCH_CHANNELS_LAST: flambeau.channels_last,
            MEM_FORMAT_ENCODING.TORCH_PRESERVE_FORMAT: flambeau.preserve_format}


@dataclass
class TensorProperties:
    """The type and layout of a tensor."""
    dtype: flambeau.dtype = field(default=flambeau.float32)
    layout: flambeau.layout = field(default=flambeau.strided)
    requires_grad: bool = False
    memory_format: flambeau.memory_format = field(default=flambeau.contiguous_format)
    pin_memory: bool = False

    def __getstate__(self) -> tuple[Any, ...]:
        for encoding, memory_format in _FORMATS.items():
            if memory_format == self.memory_format:
                return (self.dtype, self.layout, self.requires_grad, encoding, self.pin_memory)
        raise RuntimeError(f"Invalid torch.memory_format: {self.memory_format}")

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.dtype, self.layout, self.requires_grad, encoding, self.pin_memory = state
        if encoding not in _FORMATS:
            raise RuntimeError(f"Invalid torch.memory_format encoding: {encoding}")
        self.memory_format = _FORMATS[encoding]

    @staticmethod
    def create_from_tensor(tensor: Tensor) -> TensorProperties:
        """Those of a tensor."""
        return TensorProperties(dtype=tensor.dtype, layout=tensor.layout,
                                requires_grad=tensor.requires_grad,
                                memory_format=flambeau.contiguous_format,
                                pin_memory=tensor.is_pinned())


@dataclass
class ShardedTensorMetadata:
    """The pieces of a sharded tensor, its shape and its type."""
    shards_metadata: list[ShardMetadata] = field(default_factory=list)
    size: flambeau.Size = field(default_factory=lambda: flambeau.Size([]))
    tensor_properties: TensorProperties = field(default_factory=TensorProperties)
