"""What readers and writers have to do."""
from __future__ import annotations

import flambeau as torch
from flambeau.distributed import checkpoint as dcp
from flambeau.distributed.checkpoint.metadata import Metadata
from flambeau.distributed.checkpoint.storage import StorageReader, StorageWriter, WriteResult
from flambeau.futures import Future

KEPT = {}


def done(value):
    future = Future()
    future.set_result(value)
    return future


class Writer(StorageWriter):
    """Keeps values in a dict."""

    def __init__(self):
        self.asked = []

    def reset(self, checkpoint_id=None):
        self.asked.append(("reset", checkpoint_id))

    def set_up_storage_writer(self, is_coordinator, *args, **kwargs):
        self.asked.append(("set up", is_coordinator))

    def prepare_local_plan(self, plan):
        self.asked.append("local")
        return plan

    def prepare_global_plan(self, plans):
        self.asked.append("global")
        return plans

    def write_data(self, plan, planner):
        self.asked.append("write")
        for item in plan.items:
            KEPT[item.index.fqn] = planner.resolve_data(item)
        return done([WriteResult(item.index, 1, "place") for item in plan.items])

    def finish(self, metadata, results):
        self.asked.append("finish")
        KEPT["about"], metadata.storage_data = metadata, results

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id):
        return checkpoint_id == "memory"


class Reader(StorageReader):
    reset = set_up_storage_reader = lambda self, *args, **kwargs: None

    def read_metadata(self, *args, **kwargs) -> Metadata:
        return KEPT["about"]

    def prepare_local_plan(self, plan):
        return plan

    def prepare_global_plan(self, plans):
        return plans

    def read_data(self, plan, planner):
        for item in plan.items:
            value = KEPT[item.storage_index.fqn]
            if isinstance(value, torch.Tensor):
                target = planner.resolve_tensor(item)
                target.copy_(value)
                planner.commit_tensor(item, target)
            else:
                value.seek(0)
                planner.load_bytes(item, value)
        return done(None)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id):
        return True


def test_storages_of_the_user():
    writer = Writer()
    dcp.save({"w": torch.ones(2), "step": 3}, storage_writer=writer, checkpoint_id="memory",
             no_dist=True)
    assert writer.asked == [("reset", "memory"), ("set up", True), "local", "global", "write",
                            "finish"]
    assert [found.index.fqn for found in KEPT["about"].storage_data[0]] == ["w", "step"]
    room = {"w": torch.zeros(2), "step": 0}
    dcp.load(room, storage_reader=Reader(), no_dist=True)
    assert room["w"].tolist() == [1, 1] and room["step"] == 3
    assert writer.storage_meta() is None


def test_storages_that_know_nothing_of_ranks():
    class OldWriter(Writer):
        def set_up_storage_writer(self, is_coordinator):
            self.asked.append(("set up", is_coordinator))

    class OldReader(Reader):
        def set_up_storage_reader(self, metadata, is_coordinator):
            self.told = metadata, is_coordinator

    writer, reader, room = OldWriter(), OldReader(), {"w": torch.zeros(2)}
    dcp.save({"w": torch.ones(2)}, storage_writer=writer, no_dist=True)
    dcp.load(room, storage_reader=reader, no_dist=True)
    assert room["w"].tolist() == [1, 1] and ("set up", True) in writer.asked
    assert reader.told == (KEPT["about"], True)
