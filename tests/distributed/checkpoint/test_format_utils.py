"""From and to files of `torch.save`."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau.distributed import checkpoint as dcp
from flambeau.distributed.checkpoint.format_utils import (
    BroadcastingTorchSaveReader,
    DynamicMetaLoadPlanner,
    dcp_to_torch_save,
    torch_save_to_dcp,
)
from flambeau.distributed.checkpoint.state_dict_loader import _load_state_dict_from_keys


def state():
    return {"model": {"w": torch.ones(2, 3), "l": [1, torch.zeros(2)]}, "step": 3,
            "s": {"a": "b"}, "e": {}, "big": torch.arange(5)}


def test_formats(tmp_path):
    dcp.save(state(), checkpoint_id=tmp_path / "a")
    dcp_to_torch_save(tmp_path / "a", tmp_path / "b.pt")
    assert torch.load(tmp_path / "b.pt")["model"]["l"][0] == 1
    torch_save_to_dcp(tmp_path / "b.pt", tmp_path / "c")
    assert _load_state_dict_from_keys(checkpoint_id=tmp_path / "c")["step"] == 3
    torch.save({"m": {"w": torch.ones(2)}}, tmp_path / "d.pt")
    room = {"m": {"w": torch.zeros(2)}}
    dcp.load(room, storage_reader=BroadcastingTorchSaveReader(tmp_path / "d.pt"),
             planner=DynamicMetaLoadPlanner())
    assert room["m"]["w"].tolist() == [1.0, 1.0]


def test_what_is_refused(tmp_path):
    torch.save({"w": torch.ones(2)}, tmp_path / "a.pt")
    reader = BroadcastingTorchSaveReader(tmp_path / "a.pt")
    with pytest.raises(dcp.CheckpointException, match=r"(?i)size|shape"):
        dcp.load({"w": torch.ones(3)}, storage_reader=reader, planner=DynamicMetaLoadPlanner(),
                 no_dist=True)
    assert reader.read_metadata().state_dict_metadata == {}
    assert BroadcastingTorchSaveReader.validate_checkpoint_id(tmp_path / "a.pt")
    assert not BroadcastingTorchSaveReader.validate_checkpoint_id(tmp_path / "none")


def test_the_state_says_what_is_there():
    planner = DynamicMetaLoadPlanner()
    planner.set_up_planner({"m": {"w": torch.ones(2, 3)}})
    (about,) = planner.metadata.state_dict_metadata.values()
    assert about.size == (2, 3) and about.chunks[0].sizes == (2, 3)
    with pytest.raises(RuntimeError, match="only supports loading Tensors"):
        DynamicMetaLoadPlanner().set_up_planner({"x": 3})
