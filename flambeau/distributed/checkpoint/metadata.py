"""What is in a checkpoint: tensors in pieces, other values, and where they are stored."""
from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import flambeau
from flambeau.distributed._tensor_properties import Properties
from flambeau.distributed.checkpoint.stateful import StatefulT

__all__ = ["BytesStorageMetadata", "ChunkStorageMetadata", "Metadata", "MetadataIndex",
           "StorageMeta", "TensorProperties", "TensorStorageMetadata"]

STATE_DICT_TYPE = dict[str, StatefulT | Any]


@dataclass
class ChunkStorageMetadata:
    """A piece of a tensor: where it begins, and its size."""
    offsets: flambeau.Size
    sizes: flambeau.Size


class _MEM_FORMAT_ENCODING(Enum):
    """Memory formats, as numbers in files."""
    TORCH_CONTIGUOUS_FORMAT = 0
    TORCH_CHANNELS_LAST = 1
    TORCH_PRESERVE_FORMAT = 2


@dataclass
class TensorProperties(Properties):
    """The type of a tensor."""
    dtype: flambeau.dtype = field(default_factory=flambeau.get_default_dtype)
    _encoding = _MEM_FORMAT_ENCODING

    @staticmethod
    def _unknown(encoding: Any) -> Exception:
        return ValueError(f"Invalid memory format encoding: {encoding}")


@dataclass
class TensorStorageMetadata:
    """A tensor: its type, its size, and its pieces."""
    properties: TensorProperties
    size: flambeau.Size
    chunks: list[ChunkStorageMetadata]


@dataclass
class BytesStorageMetadata:
    """A value that is no tensor."""


STORAGE_TYPES = TensorStorageMetadata | BytesStorageMetadata


@dataclass
class StorageMeta:
    """Which checkpoint this is."""
    checkpoint_id: str | os.PathLike | None = None
    save_id: str | None = None
    load_id: str | None = None
    modules: list[str] = field(default_factory=list)


@dataclass
class Metadata:
    """What is in a checkpoint."""
    state_dict_metadata: dict[str, STORAGE_TYPES]
    planner_data: Any = None
    storage_data: Any = None
    storage_meta: StorageMeta | None = None
    version: str | None = None


@dataclass(frozen=True)
class MetadataIndex:
    """The name of a value, or of the piece of a tensor that begins at `offset`; `index`, the
    number of the piece, is a hint.

    >>> MetadataIndex("w", [0, 2], 1) == MetadataIndex("w", [0, 2])
    True
    """
    fqn: str
    offset: flambeau.Size | None = None
    index: int | None = field(hash=False, compare=False, default=None)

    def __init__(self, fqn: str, offset: Sequence[int] | None = None, index: int | None = None):
        object.__setattr__(self, "fqn", fqn)
        object.__setattr__(self, "index", index)
        object.__setattr__(self, "offset", None if offset is None else flambeau.Size(offset))
