"""Saving and loading with the same storage."""
import flambeau as torch
from flambeau.distributed import checkpoint as dcp
from flambeau.distributed.checkpoint._checkpointer import _Checkpointer


def test_there_and_back(tmp_path):
    found = _Checkpointer(dcp.FileSystemWriter(tmp_path), dcp.FileSystemReader(tmp_path),
                          no_dist=True)
    weight = torch.ones(2)
    about = found.save({"w": weight, "step": 3})
    assert sorted(about.state_dict_metadata) == ["step", "w"]
    weight.zero_()
    room = {"w": weight, "step": 0}
    found.load(room)
    assert weight.tolist() == [1, 1] and room["step"] == 3


def test_planners(tmp_path):
    class Load(dcp.DefaultLoadPlanner):
        seen = 0

        def create_local_plan(self):
            self.seen += 1
            return super().create_local_plan()
    planner = Load()
    found = _Checkpointer(dcp.FileSystemWriter(tmp_path), dcp.FileSystemReader(tmp_path),
                          no_dist=True, load_planner=planner)
    found.save({"step": 3})
    found.load({"step": 0})
    assert planner.seen == 1 and found.coordinator_rank == 0
