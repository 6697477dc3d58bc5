import json

import pytest

import flambeau as torch
from flambeau.distributed import checkpoint
from flambeau.distributed._shard import sharded_tensor
from flambeau.distributed._shard.sharding_spec import ChunkShardingSpec
from flambeau.distributed.checkpoint._consolidate_hf_safetensors import (
    consolidate_safetensors_files_on_every_rank,
)
from flambeau.distributed.checkpoint.hf_storage import (
    HuggingFaceStorageReader,
    HuggingFaceStorageWriter,
)

pytest.importorskip("safetensors")


def test_files_and_index(tmp_path):
    state = {"a": torch.arange(4.0).view(2, 2), "b": torch.ones(3, dtype=torch.bfloat16)}
    checkpoint.save(state, storage_writer=HuggingFaceStorageWriter(tmp_path, {"a": 1, "b": 2}))
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    assert index == {"metadata": {"total_size": 22}, "weight_map": {      # as PyTorch writes it
        "a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}
    again = {name: torch.zeros_like(value) for name, value in state.items()}
    checkpoint.load(again, storage_reader=HuggingFaceStorageReader(tmp_path))
    assert all(torch.equal(again[name], value) for name, value in state.items())


def test_refusals(tmp_path):
    with pytest.raises(checkpoint.CheckpointException, match="tensors only"):
        checkpoint.save({"step": 3}, storage_writer=HuggingFaceStorageWriter(tmp_path))
    with pytest.raises(FileNotFoundError):
        HuggingFaceStorageReader(tmp_path / "nowhere").read_metadata()


def test_scales_of_blocks(tmp_path):
    state = {"w": torch.ones(3, 4), "w_scale_inv": torch.tensor([[2.0, 3.0], [5.0, 7.0]]),
             "b": torch.ones(2)}
    checkpoint.save(state, storage_writer=HuggingFaceStorageWriter(tmp_path))
    reader = checkpoint.QuantizedHuggingFaceStorageReader(tmp_path, block_size=2)
    room = {"w": torch.zeros(3, 4), "b": torch.zeros(2)}
    checkpoint.load(room, storage_reader=reader)
    assert room["w"].tolist() == [[2, 2, 3, 3], [2, 2, 3, 3], [5, 5, 7, 7]]


def pieces(rank, folder):
    spec = ChunkShardingSpec(0, ["rank:0/cpu", "rank:1/cpu"])
    mine = sharded_tensor.zeros(spec, 5, 2)
    mine.local_tensor().copy_(torch.arange(10.0).view(5, 2)[3 * rank:3 * rank + 3])
    checkpoint.save({"t": mine, "same": torch.ones(2)}, storage_writer=HuggingFaceStorageWriter(
        folder, {"t": 1, "same": 2}, enable_consolidation=True))
    room = {"t": torch.zeros(5, 2)}
    for where in (folder, f"{folder}/sharded"):
        checkpoint.load(room, storage_reader=HuggingFaceStorageReader(where))
        assert torch.equal(room["t"], torch.arange(10.0).view(5, 2))
    mapping = {"t": 1, "same": 2}
    consolidate_safetensors_files_on_every_rank(f"{folder}/sharded", f"{folder}/again", mapping)


def test_pieces_of_two_processes(processes, tmp_path):
    processes(pieces, str(tmp_path))
    for folder in (tmp_path, tmp_path / "again"):
        index = json.loads((folder / "model.safetensors.index.json").read_text())
        assert index["weight_map"] == {"same": "model-00002-of-00002.safetensors",
                                       "t": "model-00001-of-00002.safetensors"}
        assert index["metadata"] == {"total_size": 48}
