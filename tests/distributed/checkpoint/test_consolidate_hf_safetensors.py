"""Whole files of those with pieces."""
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
