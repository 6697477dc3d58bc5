"""Names and pieces of the files in which Hugging Face keeps checkpoints."""
from __future__ import annotations

import io
import json
import struct
from dataclasses import dataclass
from typing import Any

import flambeau

CUSTOM_METADATA_KEY, SAVED_OFFSETS_KEY = "DCP_SHARDING_INFO", "saved_offsets"
SHARDED_DIR_NAME = "sharded"
_metadata_fn: str = "model.safetensors.index.json"

FILE_NAME = "model-{cpt_idx}-of-{num_files}"
SHARDED_FILE_NAME = "shard-{shard_idx}-model-{cpt_idx}-of-{num_files}"
SUFFIX = ".safetensors"
DCP_SHARDING_INFO_KEY, DCP_VERSION_KEY, HF_DCP_VERSION = CUSTOM_METADATA_KEY, "DCP_VERSION", 1.0
DATA_KEY, DATA_OFFSETS_KEY, DTYPE_KEY, SHAPE_KEY = "data", "data_offsets", "dtype", "shape"
DEFAULT_EXTRA_METADATA_KEY, FORMAT_KEY, FORMAT_VALUE = "__metadata__", "format", "pt"
NUM_BYTES_FOR_HEADER_LEN = 8

DTYPE_MAP = {
    "F16": flambeau.float16, "F32": flambeau.float32, "F64": flambeau.float64,
    "I8": flambeau.int8, "U8": flambeau.uint8, "I16": flambeau.int16, "I32": flambeau.int32,
    "I64": flambeau.int64, "BF16": flambeau.bfloat16}


@dataclass
class _HFStorageInfo:
    """Where a tensor is."""

    relative_path: str
    shape: flambeau.Size
    dtype: flambeau.dtype


def _gen_file_name(index: int, largest_index: int, shard_index: int | None = None) -> str:
    """The name of a file: its number, of how many, and that of the process if each has its own.

    >>> _gen_file_name(1, 5)
    'model-00001-of-00005.safetensors'
    """
    form = FILE_NAME if shard_index is None else SHARDED_FILE_NAME
    return form.format(cpt_idx=f"{index:05}", num_files=f"{largest_index:05}",
                       shard_idx=f"{shard_index or 0:05}") + SUFFIX


def _get_safetensors_file_metadata(file_bytes: io.IOBase) -> tuple[Any, int]:
    """The head of a file, and where the data begins."""
    size, = struct.unpack("<Q", file_bytes.read(NUM_BYTES_FOR_HEADER_LEN))
    return json.loads(file_bytes.read(size)), NUM_BYTES_FOR_HEADER_LEN + size


def _get_dtype(dtype_str: str) -> flambeau.dtype:
    """The type of that name; float32 for one that is not known.

    >>> _get_dtype("BF16")
    torch.bfloat16
    """
    return DTYPE_MAP.get(dtype_str, flambeau.get_default_dtype())


def _get_dcp_custom_metadata(metadata: Any) -> Any | None:
    """What the head of a file says of the places of its pieces."""
    text = metadata.get(DEFAULT_EXTRA_METADATA_KEY, {}).get(CUSTOM_METADATA_KEY)
    return None if text is None else json.loads(text)
