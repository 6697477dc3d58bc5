"""Files of checkpoints; a folder that PyTorch 2.13 has written."""
from __future__ import annotations

import io
import pickle
from pathlib import Path

import pytest

import flambeau as torch
from flambeau.distributed import checkpoint as dcp
from flambeau.distributed.checkpoint.metadata import MetadataIndex
from flambeau.distributed.checkpoint.state_dict_loader import _load_state_dict_from_keys


def state():
    return {"model": {"w": torch.ones(2, 3), "l": [1, torch.zeros(2)]}, "step": 3,
            "s": {"a": "b"}, "e": {}, "big": torch.arange(5)}


def test_files_and_descriptions(tmp_path):
    about = dcp.save(state(), checkpoint_id=tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == [".metadata", "__0_0.distcp"]
    assert about.planner_data["model.l.1"] == ("model", "l", 1) and about.version == "1.0.0"
    assert about.state_dict_metadata["model.w"].chunks[0].sizes == (2, 3)
    place = about.storage_data[MetadataIndex("model.w", [0, 0])]
    raw = (tmp_path / place.relative_path).read_bytes()[place.offset:place.offset + place.length]
    assert torch.equal(torch.load(io.BytesIO(raw)), torch.ones(2, 3))       # a file of its own
    names = (tmp_path / ".metadata").read_bytes()
    assert b"torch.distributed.checkpoint.metadata" in names and b"flambeau" not in names
    room = {"model": {"w": torch.zeros(2, 3), "l": [0, torch.ones(2)]}, "step": 0}
    dcp.load(room, checkpoint_id=tmp_path)
    assert room["step"] == 3 and room["model"]["l"][0] == 1 and room["model"]["w"].sum() == 6
    assert _load_state_dict_from_keys({"s"}, checkpoint_id=tmp_path) == {"s": {"a": "b"}}
    dcp.save({"a": torch.ones(1), "b": 1},
             storage_writer=dcp.FileSystemWriter(tmp_path / "x", single_file_per_rank=False))
    assert len(list((tmp_path / "x").glob("*.distcp"))) == 2
    part = torch.arange(1000.0)[10:12]
    dcp.save({"part": part}, storage_writer=dcp.FileSystemWriter(tmp_path / "y", thread_count=2))
    assert (tmp_path / "y" / "__0_0.distcp").stat().st_size < 3000


RECORDED = Path(__file__).parents[2] / "data" / "distributed_checkpoint"


def test_what_two_processes_of_pytorch_have_written():
    found = _load_state_dict_from_keys(checkpoint_id=RECORDED)
    assert torch.equal(found["pieces"], torch.arange(10.0).view(5, 2)) and found["step"] == 7
    assert found["half"].dtype is torch.bfloat16 and found["half"].tolist() == [0, 1, 2, 3]
    assert found["model"]["l"][0] == 1 and found["model"]["w"].tolist() == [1, 1, 1]
    about = dcp.FileSystemReader(RECORDED).read_metadata()
    assert len(about.state_dict_metadata["pieces"].chunks) == 2 and about.version == "1.0.0"


def test_what_is_refused(tmp_path):
    dcp.save(state(), checkpoint_id=tmp_path)
    with pytest.raises(dcp.CheckpointException, match="Checkpoint already exists"):
        dcp.save({}, storage_writer=dcp.FileSystemWriter(tmp_path, overwrite=False))
    with pytest.raises(dcp.CheckpointException, match="No such file"):
        dcp.load({}, checkpoint_id=tmp_path / "nothing")


def test_metadata_that_would_run_something(tmp_path):
    (tmp_path / ".metadata").write_bytes(pickle.dumps(print))
    with pytest.raises(dcp.CheckpointException, match="has no place in the metadata"):
        dcp.load({}, checkpoint_id=tmp_path)


@pytest.mark.parametrize("options", [
    {}, {"single_file_per_rank": False}, {"thread_count": 3, "single_file_per_rank": False},
    {"sync_files": False}, {"cache_staged_state_dict": False}])
def test_options(options, tmp_path):
    dcp.save(state(), storage_writer=dcp.FileSystemWriter(tmp_path, **options), no_dist=True)
    room = {"model": {"w": torch.zeros(2, 3), "l": [0, torch.ones(2)]}, "big": torch.zeros(
        5, dtype=torch.int64)}
    dcp.load(room, storage_reader=dcp.FileSystemReader(tmp_path), no_dist=True)
    assert room["model"]["w"].sum() == 6 and room["big"].tolist() == [0, 1, 2, 3, 4]


def test_what_they_know(tmp_path):
    writer, reader = dcp.FileSystemWriter(tmp_path), dcp.FileSystemReader(tmp_path)
    assert writer.checkpoint_id == reader.checkpoint_id == tmp_path
    before = writer.storage_meta()
    assert before.checkpoint_id == tmp_path and before.save_id
    writer.reset(tmp_path / "other")
    assert writer.checkpoint_id == tmp_path / "other"
    assert writer.storage_meta().save_id != before.save_id
    assert reader.validate_checkpoint_id(str(tmp_path))
    assert not reader.validate_checkpoint_id("a://b")
