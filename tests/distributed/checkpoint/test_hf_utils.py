"""Names and heads of Hugging Face's files."""
from __future__ import annotations

import io
import json
import struct

import pytest

import flambeau as torch
from flambeau.distributed.checkpoint._hf_utils import (
    CUSTOM_METADATA_KEY,
    _gen_file_name,
    _get_dcp_custom_metadata,
    _get_dtype,
    _get_safetensors_file_metadata,
)


def test_names():
    assert _gen_file_name(1, 5) == "model-00001-of-00005.safetensors"
    assert _gen_file_name(12345, 123456, 7) == "shard-00007-model-12345-of-123456.safetensors"
    assert _gen_file_name(2, 3, 0) == "shard-00000-model-00002-of-00003.safetensors"


@pytest.mark.parametrize(("name", "dtype"), [
    ("F16", torch.float16), ("BF16", torch.bfloat16), ("F64", torch.float64), ("I8", torch.int8),
    ("U8", torch.uint8), ("I64", torch.int64), ("F32", torch.float32), ("none", torch.float32)])
def test_types(name, dtype):
    assert _get_dtype(name) is dtype


def test_heads():
    head = json.dumps({"w": {"dtype": "F32"}}).encode()
    file = io.BytesIO(struct.pack("<Q", len(head)) + head + b"data")
    about, begin = _get_safetensors_file_metadata(file)
    assert about == {"w": {"dtype": "F32"}} and file.getvalue()[begin:] == b"data"


def test_where_pieces_lie():
    places = {"w": {"saved_offsets": [0, 2]}}
    assert _get_dcp_custom_metadata(
        {"__metadata__": {CUSTOM_METADATA_KEY: json.dumps(places)}}) == places
    assert _get_dcp_custom_metadata({}) is None
    assert _get_dcp_custom_metadata({"__metadata__": {"format": "pt"}}) is None
