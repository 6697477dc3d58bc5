"""Reading states, also with other pieces than those that were written."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau.distributed import checkpoint as dcp
from flambeau.distributed._shard import sharded_tensor
from flambeau.distributed._shard.sharding_spec import ChunkShardingSpec
from flambeau.distributed.checkpoint.state_dict_loader import _load_state_dict_from_keys


def pieces(rank, folder):
    spec = ChunkShardingSpec(0, ["rank:0/cpu", "rank:1/cpu"])
    whole = torch.arange(10.0).view(5, 2)
    mine = sharded_tensor.zeros(spec, 5, 2)
    mine.local_tensor().copy_(whole[3 * rank:3 * rank + 3])
    about = dcp.save({"t": mine, "same": torch.ones(3), "step": 4}, checkpoint_id=folder)
    assert sorted(tuple(c.offsets) for c in about.state_dict_metadata["t"].chunks) == [(0, 0),
                                                                                      (3, 0)]
    room = {"t": torch.zeros(5, 2), "same": torch.zeros(3), "step": 0}
    dcp.load(room, checkpoint_id=folder)
    assert torch.equal(room["t"], whole) and room["step"] == 4
    other = sharded_tensor.zeros(ChunkShardingSpec(1, ["rank:1/cpu", "rank:0/cpu"]), 5, 2)
    dcp.load({"t": other}, checkpoint_id=folder)
    assert torch.equal(other.local_tensor(), whole[:, 1 - rank:2 - rank])
    with pytest.raises(dcp.CheckpointException, match="Missing key"):
        dcp.load({"t": torch.zeros(5, 2), **({"x": 1} if rank else {})}, checkpoint_id=folder)


def test_two_processes(processes, tmp_path):
    processes(pieces, str(tmp_path))
    whole = _load_state_dict_from_keys(checkpoint_id=tmp_path)      # by one process
    assert torch.equal(whole["t"], torch.arange(10.0).view(5, 2))


def test_what_is_not_there(tmp_path):
    dcp.save({"big": torch.arange(5), "s": {"a": "b", "c": 2}}, checkpoint_id=tmp_path)
    for wanted, message in (({"other": 1}, r"Missing key in checkpoint state_dict: other\."),
                            ({"big": torch.zeros(4)}, "Size mismatch between saved")):
        with pytest.raises(dcp.CheckpointException, match=message):
            dcp.load(wanted, checkpoint_id=tmp_path)
    wanted = {"other": 1}
    dcp.load(wanted, checkpoint_id=tmp_path,
             planner=dcp.DefaultLoadPlanner(allow_partial_load=True))
    assert wanted == {"other": 1}
    with pytest.raises(RuntimeError, match="`checkpoint_id` must be specified"):
        dcp.load({})


def test_keys(tmp_path):
    dcp.save({"a": torch.ones(1), "s": {"a": "b", "c": 2}}, checkpoint_id=tmp_path)
    assert _load_state_dict_from_keys("s.c", checkpoint_id=tmp_path) == {"s": {"c": 2}}
    assert sorted(_load_state_dict_from_keys(checkpoint_id=tmp_path)) == ["a", "s"]
    assert _load_state_dict_from_keys({"s"}, checkpoint_id=tmp_path) == {"s": {"a": "b", "c": 2}}


def test_the_older_name(tmp_path):
    dcp.save({"a": torch.ones(1)}, checkpoint_id=tmp_path)
    room = {"a": torch.zeros(1)}
    with pytest.warns(FutureWarning, match="`load_state_dict` is deprecated"):
        dcp.load_state_dict(room, dcp.FileSystemReader(tmp_path), no_dist=True)
    assert room["a"].item() == 1
