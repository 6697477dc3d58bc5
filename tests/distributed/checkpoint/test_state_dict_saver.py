"""Writing states."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau.distributed import checkpoint as dcp
from flambeau.distributed.checkpoint.staging import DefaultStager


class Counter:
    value = 1

    def state_dict(self):
        return {"value": self.value}

    def load_state_dict(self, state_dict):
        self.value = state_dict["value"]


def test_objects_and_threads(tmp_path):
    counter, weight = Counter(), torch.ones(2)
    future = dcp.async_save({"c": counter, "w": weight}, checkpoint_id=tmp_path)
    weight.zero_()
    assert sorted(future.result().state_dict_metadata) == ["c.value", "w"]
    counter.value = 2
    dcp.load({"c": counter, "w": weight}, checkpoint_id=tmp_path)
    assert counter.value == 1 and weight.tolist() == [1.0, 1.0]
    stager = DefaultStager()
    response = dcp.async_save({"w": weight}, checkpoint_id=tmp_path / "x", async_stager=stager)
    response.staging_completion.result()
    response.upload_completion.result()
    stager.close()


def test_what_is_refused(tmp_path):
    with pytest.raises(RuntimeError, match="`checkpoint_id` must be specified"):
        dcp.save({})
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        dcp.async_save({}, checkpoint_id=tmp_path,
                       async_checkpointer_type=dcp.state_dict_saver.AsyncCheckpointerType.PROCESS)


def test_without_a_group_it_is_one_process(tmp_path):
    about = dcp.save({"w": torch.ones(1)}, checkpoint_id=tmp_path)
    assert list(about.state_dict_metadata) == ["w"]
    with pytest.warns(FutureWarning, match="`save_state_dict` is deprecated"):
        dcp.save_state_dict({"w": torch.ones(1)}, dcp.FileSystemWriter(tmp_path / "x"),
                            no_dist=True)
    assert (tmp_path / "x" / ".metadata").exists()
