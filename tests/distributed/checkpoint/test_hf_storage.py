"""Checkpoints in the files of Hugging Face."""
import json

import pytest

import flambeau as torch
from flambeau.distributed import checkpoint
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
