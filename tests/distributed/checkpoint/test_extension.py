"""Streams of checkpoints that are changed on their way, or that are read from front to end."""
import gzip
import io
import json
import pickle
import struct

import pytest

import flambeau as torch
from flambeau.distributed import _serialization
from flambeau.distributed import checkpoint as dcp
from flambeau.distributed.checkpoint import _hf_utils as hf
from flambeau.distributed.checkpoint._checkpointer import _Checkpointer
from flambeau.distributed.checkpoint._extension import (
    ExtensionRegistry,
    StreamTransformExtension,
    ZStandard,
)


class Zipped(StreamTransformExtension):
    @staticmethod
    def registry_name():
        return "gz"

    @staticmethod
    def from_descriptor(version):
        return Zipped()

    def get_descriptor(self):
        return "gz/1"

    def transform_to(self, output):
        return gzip.GzipFile(fileobj=output, mode="wb")

    def transform_from(self, input):
        return gzip.GzipFile(fileobj=input, mode="rb")


def test_a_checkpoint_that_is_compressed(tmp_path):
    registry = ExtensionRegistry()
    registry.register(Zipped)
    state = {"w": torch.zeros(1000), "n": 3}
    about = dcp.save(state, storage_writer=dcp.FileSystemWriter(tmp_path, _extensions=[Zipped()]))
    places = list(about.storage_data.values())
    assert all(place.transform_descriptors == ["gz/1"] for place in places)
    assert sum(place.length for place in places) < 1500
    found = {"w": torch.ones(1000), "n": 0}
    reader = dcp.FileSystemReader(tmp_path, _extension_registry=registry)
    dcp.load(found, storage_reader=reader)
    assert not found["w"].any() and found["n"] == 3
    with pytest.raises(dcp.CheckpointException, match="Unknown extension name='gz'"):
        dcp.load(found, checkpoint_id=tmp_path)


def test_extensions_by_name():
    assert ZStandard.registry_name() == "stream.zstd"
    with pytest.raises(ValueError, match="Unknown extension version='2'"):
        ExtensionRegistry().from_descriptor_list(["stream.zstd/2"])
    if not ZStandard.is_available():
        with pytest.raises(ValueError, match="no module named 'zstandard' or 'pyzstd'"):
            ZStandard()


def test_a_stream_that_is_read_from_front_to_end():
    stream = io.BytesIO()
    state = {"w": torch.arange(3.0), "h": torch.ones(2, dtype=torch.bfloat16), "k": [1]}
    _serialization._streaming_save(state, stream)
    stream.write(b"rest")
    whole = stream.getvalue()
    assert whole.startswith(b"\x80\x02]q\x00(ctorch.distributed._serialization\n_Entry\n")
    stream.seek(0)
    found = _serialization._streaming_load(stream)
    assert torch.equal(found["w"], state["w"]) and found["k"] == [1]
    assert found["h"].dtype is torch.bfloat16 and stream.read() == b"rest"
    with pytest.raises(EOFError, match="the stream ends"):
        _serialization._streaming_load(io.BytesIO(whole[:-20]))
    with pytest.raises(pickle.UnpicklingError, match="no place in the index"):
        _serialization._streaming_load(io.BytesIO(pickle.dumps([print])))


def test_names_and_heads_of_hugging_face():
    assert hf._gen_file_name(1, 5, 2) == "shard-00002-model-00001-of-00005.safetensors"
    assert hf._get_dtype("BF16") is torch.bfloat16 and hf._get_dtype("XX") is torch.float32
    about = {"a": {"dtype": "F32"}, "__metadata__": {"DCP_SHARDING_INFO": '{"a": [0]}'}}
    text = json.dumps(about).encode()
    head = io.BytesIO(struct.pack("<Q", len(text)) + text)
    assert hf._get_safetensors_file_metadata(head) == (about, 8 + len(text))
    assert hf._get_dcp_custom_metadata(about) == {"a": [0]}
    assert hf._get_dcp_custom_metadata({}) is None


def test_the_same_storage_again_and_again(tmp_path):
    keeper = _Checkpointer(dcp.FileSystemWriter(tmp_path), dcp.FileSystemReader(tmp_path))
    state = {"w": torch.ones(2)}
    keeper.save(state)
    state["w"].add_(1)
    keeper.async_save(state).result()
    state["w"].zero_()
    keeper.load(state)
    assert state["w"].tolist() == [2.0, 2.0]
