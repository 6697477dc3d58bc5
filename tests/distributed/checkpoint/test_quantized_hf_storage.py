"""Quantised checkpoints in the files of Hugging Face."""
import pytest

import flambeau as torch
from flambeau.distributed import checkpoint
from flambeau.distributed.checkpoint.hf_storage import HuggingFaceStorageWriter

pytest.importorskip("safetensors")


def test_scales_of_blocks(tmp_path):
    state = {"w": torch.ones(3, 4), "w_scale_inv": torch.tensor([[2.0, 3.0], [5.0, 7.0]]),
             "b": torch.ones(2)}
    checkpoint.save(state, storage_writer=HuggingFaceStorageWriter(tmp_path))
    reader = checkpoint.QuantizedHuggingFaceStorageReader(tmp_path, block_size=2)
    room = {"w": torch.zeros(3, 4), "b": torch.zeros(2)}
    checkpoint.load(room, storage_reader=reader)
    assert room["w"].tolist() == [[2, 2, 3, 3], [2, 2, 3, 3], [5, 5, 7, 7]]
