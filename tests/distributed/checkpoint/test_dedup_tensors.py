"""What several processes have is written by the first."""
import flambeau as torch
from flambeau.distributed.checkpoint._dedup_tensors import dedup_tensors, init_logger
from flambeau.distributed.checkpoint.planner import SavePlan
from flambeau.distributed.checkpoint.planner_helpers import _create_write_items


def test_the_first_writes():
    shared = _create_write_items("w", torch.zeros(3))
    own = _create_write_items("v", torch.zeros(3))
    found = dedup_tensors([SavePlan(shared), SavePlan(shared + own), SavePlan(shared)])
    assert [[item.index.fqn for item in plan.items] for plan in found] == [["w"], ["v"], []]


def test_bytes_of_several_stay():
    shared = _create_write_items("step", 3)
    found = dedup_tensors([SavePlan(shared), SavePlan(shared)])
    assert sum(len(plan.items) for plan in found) == 1


def test_the_logger():
    assert init_logger().name.endswith("_dedup_tensors")
