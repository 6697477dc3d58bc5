"""A thread writes."""
from __future__ import annotations

from concurrent.futures import Future

import pytest

import flambeau as torch
from flambeau.distributed import checkpoint as dcp
from flambeau.distributed.checkpoint._async_thread_executor import (
    _ThreadBasedAsyncCheckpointExecutor,
)


@pytest.mark.parametrize("later", [False, True])
def test_a_state_or_what_becomes_one(later, tmp_path):
    state = {"w": torch.ones(2), "step": 3}
    if later:
        state, ready = Future(), state
    saved = _ThreadBasedAsyncCheckpointExecutor().execute_save(
        state, checkpoint_id=tmp_path, no_dist=True)
    if later:
        assert not saved.done()
        state.set_result(ready)
    assert sorted(saved.result(30).state_dict_metadata) == ["step", "w"]
    room = {"w": torch.zeros(2), "step": 0}
    dcp.load(room, checkpoint_id=tmp_path, no_dist=True)
    assert room["step"] == 3 and room["w"].tolist() == [1, 1]


def test_errors_come_with_the_result(tmp_path):
    dcp.save({}, checkpoint_id=tmp_path, no_dist=True)
    saved = _ThreadBasedAsyncCheckpointExecutor().execute_save(
        {}, storage_writer=dcp.FileSystemWriter(tmp_path, overwrite=False), no_dist=True)
    with pytest.raises(dcp.CheckpointException, match="Checkpoint already exists"):
        saved.result(30)
