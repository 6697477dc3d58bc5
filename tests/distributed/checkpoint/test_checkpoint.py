"""Checkpoints of one and of several processes; a folder that PyTorch 2.13 has written."""
from __future__ import annotations

import importlib
import io
import pickle
import sys
from pathlib import Path

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau import nn
from flambeau.distributed import checkpoint as dcp
from flambeau.distributed._shard import sharded_tensor
from flambeau.distributed._shard.sharding_spec import ChunkShardingSpec
from flambeau.distributed.checkpoint._nested_dict import flatten_state_dict, unflatten_state_dict
from flambeau.distributed.checkpoint.format_utils import (
    BroadcastingTorchSaveReader,
    DynamicMetaLoadPlanner,
    dcp_to_torch_save,
    torch_save_to_dcp,
)
from flambeau.distributed.checkpoint.metadata import MetadataIndex
from flambeau.distributed.checkpoint.staging import DefaultStager
from flambeau.distributed.checkpoint.state_dict_loader import _load_state_dict_from_keys
from flambeau.distributed.checkpoint.stateful import Stateful
from flambeau.distributed.fsdp import FullyShardedDataParallel as FSDP
from flambeau.distributed.fsdp import StateDictType


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
    for wanted, message in (({"other": 1}, "Missing key in checkpoint state_dict: other."),
                            ({"big": torch.zeros(4)}, "Size mismatch between saved")):
        with pytest.raises(dcp.CheckpointException, match=message):
            dcp.load(wanted, checkpoint_id=tmp_path)
    dcp.load({"other": 1}, checkpoint_id=tmp_path,
             planner=dcp.DefaultLoadPlanner(allow_partial_load=True))
    with pytest.raises(RuntimeError, match="`checkpoint_id` must be specified"):
        dcp.save({})
    with pytest.raises(dcp.CheckpointException, match="Checkpoint already exists"):
        dcp.save({}, storage_writer=dcp.FileSystemWriter(tmp_path, overwrite=False))
    with pytest.raises(dcp.CheckpointException, match="No such file"):
        dcp.load({}, checkpoint_id=tmp_path / "nothing")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / ".metadata").write_bytes(pickle.dumps(print))
    with pytest.raises(dcp.CheckpointException, match="has no place in the metadata"):
        dcp.load({}, checkpoint_id=tmp_path / "bad")
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        dcp.async_save({}, checkpoint_id=tmp_path, async_checkpointer_type=PROCESS)


PROCESS = dcp.state_dict_saver.AsyncCheckpointerType.PROCESS


WRITTEN_BESIDE = """
from flambeau.distributed import checkpoint as dcp
Kind = dcp.state_dict_saver.AsyncCheckpointerType
for kind in Kind:
    for step in range(2):
        weight = torch.full((3,), float(rank + step))
        saved = dcp.async_save({f"w{rank}": weight}, checkpoint_id=f"{path}/{kind}{step}",
                               async_checkpointer_type=kind)
        for _ in range(20):                     # the collectives of the program go on
            dist.all_reduce(weight)
        assert sorted(saved.result(60).state_dict_metadata) == ["w0", "w1"]
        found = {"w0": torch.zeros(3), "w1": torch.zeros(3)}
        dcp.load(found, checkpoint_id=f"{path}/{kind}{step}")
        assert found["w0"][0] == step and found["w1"][0] == 1 + step
with pytest.raises(dcp.CheckpointException, match="Checkpoint already exists"):
    dcp.async_save({"w": weight}, storage_writer=dcp.FileSystemWriter(
        f"{path}/{kind}1", overwrite=False), async_checkpointer_type=kind).result(60)
say("done")
"""


@pytest.mark.parametrize("size", [1, 2])
def test_a_thread_or_a_process_writes_while_the_program_goes_on(job, tmp_path, size):
    program = WRITTEN_BESIDE if size == 2 else WRITTEN_BESIDE.replace(
        '["w0", "w1"]', '["w0"]').replace('"w0": torch.zeros(3), "w1": torch.zeros(3)',
        '"w0": torch.zeros(3)').replace(' and found["w1"][0] == 1 + step', "")
    said, codes = job(f"path = {str(tmp_path)!r}\n{program}", size=size, backend="gloo")
    assert said == [["done"]] * size and codes == [0] * size


class Counter:
    value = 1

    def state_dict(self):
        return {"value": self.value}

    def load_state_dict(self, state_dict):
        self.value = state_dict["value"]


def test_objects_and_threads(tmp_path):
    counter, weight = Counter(), torch.ones(2)
    assert isinstance(counter, Stateful)
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


def test_names():
    flat, places = flatten_state_dict({"a": {"b": 1, "c": (1, 2)}, "d": [torch.ones(1), [3]]})
    assert list(flat) == ["a.b", "a.c", "d.0", "d.1"] and places["d.1"] == ("d", 1)
    assert unflatten_state_dict(flat, places)["a"] == {"b": 1, "c": (1, 2)}
    with pytest.raises(ValueError, match=r"duplicated flatten key a\.b"):
        flatten_state_dict({"a": {"b": 1}, "a.b": 2})


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


def models(rank, folder):
    torch.manual_seed(rank)
    model = FSDP(nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)), use_orig_params=True)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(2, 3)).sum().backward()
    optimizer.step()
    with FSDP.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
        dcp.save({"model": model.state_dict(),
                  "optim": FSDP.optim_state_dict(model, optimizer)}, checkpoint_id=folder)
    plain = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    dcp.load({"model": plain.state_dict()}, checkpoint_id=folder)
    with FSDP.summon_full_params(model):
        for p, q in zip(model.parameters(), plain.parameters()):
            assert torch.equal(p, q)
    with FSDP.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
        found = dcp.load_sharded_optimizer_state_dict(
            model.state_dict(), "optim", dcp.FileSystemReader(folder))
        optimizer.load_state_dict(FSDP.optim_state_dict_to_load(model, optimizer,
                                                                found["optim"]))


def everything(rank, folder):
    pieces(rank, f"{folder}/a")
    models(rank, f"{folder}/b")


def test_two_processes(processes, tmp_path):
    processes(everything, str(tmp_path))
    whole = _load_state_dict_from_keys(checkpoint_id=tmp_path / "a")     # by one process
    assert torch.equal(whole["t"], torch.arange(10.0).view(5, 2))
    assert not dist.is_initialized()


def test_urls():
    pytest.importorskip("fsspec")
    where = "memory://checkpoints/a"
    dcp.save({"w": torch.ones(2), "step": 3}, checkpoint_id=where)
    dcp.save({"w": torch.ones(2), "step": 4}, checkpoint_id=where)
    room = {"w": torch.zeros(2), "step": 0}
    dcp.load(room, checkpoint_id=where)
    assert room["step"] == 4 and room["w"].sum() == 2


def test_the_older_place():
    name = "flambeau.distributed._shard.checkpoint"
    sys.modules.pop(name, None)          # it warns when it is imported, which may have been before
    with pytest.warns(DeprecationWarning, match="use `torch.distributed.checkpoint` instead"):
        checkpoint = importlib.import_module(name)
    assert checkpoint.save is dcp.save
