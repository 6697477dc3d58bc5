"""What is written and read, by default."""
from __future__ import annotations

import io

import pytest

import flambeau as torch
from flambeau.distributed.checkpoint import DefaultLoadPlanner, DefaultSavePlanner
from flambeau.distributed.checkpoint.default_planner import (
    _check_box_bounds,
    _check_box_overlap,
    _create_default_local_metadata,
    _EmptyStateDictLoadPlanner,
    _validate_global_plan,
    create_default_global_save_plan,
    create_default_local_load_plan,
    create_default_local_save_plan,
)
from flambeau.distributed.checkpoint.metadata import ChunkStorageMetadata, MetadataIndex
from flambeau.distributed.checkpoint.planner import LoadItemType, SavePlan

STATE = {"m": {"w": torch.ones(2, 3), "l": [1, torch.zeros(2)]}, "step": 3}


def piece(offsets, sizes):
    return ChunkStorageMetadata(torch.Size(offsets), torch.Size(sizes))


def plan_of(planner, state=STATE):
    planner.set_up_planner(state, is_coordinator=True)
    return planner.create_local_plan()


def test_saving():
    planner = DefaultSavePlanner()
    plan = plan_of(planner)
    assert [item.index.fqn for item in plan.items] == ["m.w", "m.l.0", "m.l.1", "step"]
    assert plan.planner_data["m.l.1"] == ("m", "l", 1)
    (plan,), about = planner.create_global_plan([plan])
    assert about.state_dict_metadata["m.w"].size == (2, 3)
    assert about.planner_data["step"] == ("step",)
    assert planner.finish_plan(plan) is plan
    assert planner.resolve_data(plan.items[0]) is STATE["m"]["w"]
    data = planner.resolve_data(plan.items[-1])
    data.seek(0)
    assert torch.load(data) == 3


def test_saving_as_it_is():
    planner = DefaultSavePlanner(flatten_state_dict=False)
    plan = plan_of(planner, {"w": torch.ones(1), "x": {"y": 1}})
    assert [item.index.fqn for item in plan.items] == ["w", "x"] and plan.planner_data is None


def test_plans_that_are_kept():
    class Kept(DefaultSavePlanner):
        pass
    first, second = Kept(enable_plan_caching=True), Kept(enable_plan_caching=True)
    plan = plan_of(first)
    (done,), about = first.create_global_plan([plan])
    assert plan.usable and first.finish_plan(done).items
    again = plan_of(second)
    assert not again.usable and again.items == []
    (none,), same = second.create_global_plan([again])
    assert same == about and not none.usable
    assert [item.index for item in second.finish_plan(none).items] == [
        item.index for item in done.items]


def metadata(state=STATE):
    return DefaultSavePlanner.create_global_plan(
        planner := DefaultSavePlanner(), [plan_of(planner, state)])[1]


def test_loading():
    state = {"m": {"w": torch.zeros(2, 3), "l": [0, torch.zeros(2)]}, "step": 0}
    planner = DefaultLoadPlanner()
    planner.set_up_planner(state, metadata(), True)
    plan = planner.create_local_plan()
    by_name = {item.dest_index.fqn: item for item in plan.items}
    assert by_name["step"].type is LoadItemType.BYTE_IO
    target = planner.resolve_tensor(by_name["m.w"])
    target.fill_(7)
    planner.commit_tensor(by_name["m.w"], target)
    assert state["m"]["w"].eq(7).all()
    data = io.BytesIO()
    torch.save(5, data)
    data.seek(0)
    planner.load_bytes(by_name["step"], data)
    assert state["step"] == 5
    assert planner.create_global_plan([plan]) == [plan] and planner.finish_plan(plan) is plan
    assert planner.lookup_tensor(MetadataIndex("m.w")) is state["m"]["w"]


def test_what_is_missing():
    about = metadata({"w": torch.ones(2)})
    with pytest.raises(RuntimeError, match=r"Missing key in checkpoint state_dict: x\."):
        create_default_local_load_plan({"x": 1}, about)
    assert create_default_local_load_plan({"x": 1}, about, strict=False).items == []
    with pytest.raises(ValueError, match=r"Size mismatch between saved torch.Size\(\[2\]\) and "
                                         r"current: torch.Size\(\[3\]\) for w"):
        create_default_local_load_plan({"w": torch.ones(3)}, about)


@pytest.mark.parametrize(("keys", "found"), [
    (None, {"m", "step"}), ({"m"}, {"m"}), ({"m.w"}, {"m"}), ({"step"}, {"step"}), ({"x"}, set())])
def test_from_nothing(keys, found):
    planner, state = _EmptyStateDictLoadPlanner(keys=keys), {}
    planner.set_up_planner(state, metadata(), True)
    assert set(state) == found


def test_plans_of_all():
    plan = create_default_local_save_plan({"w": torch.ones(2), "x": 1}, is_coordinator=True)
    other = create_default_local_save_plan({"w": torch.ones(2), "x": 1}, is_coordinator=False)
    assert len(plan.items) == 2 and [item.index.fqn for item in other.items] == ["w", "x"]
    plans, about = create_default_global_save_plan([plan])
    assert [item.index.index for item in plans[0].items] == [0, None]
    assert len(about.state_dict_metadata["w"].chunks) == 1
    with pytest.raises(AssertionError):
        create_default_global_save_plan([SavePlan(plan.items[1:]), SavePlan(plan.items[1:])])


def test_boxes():
    assert _check_box_overlap(piece((0, 0), (2, 2)), piece((1, 1), (2, 2)))
    assert not _check_box_overlap(piece((0, 0), (2, 2)), piece((0, 2), (2, 2)))
    whole = torch.Size([4, 4])
    assert _check_box_bounds(whole, piece((2, 2), (2, 2)))
    assert not _check_box_bounds(whole, piece((2, 3), (2, 2)))
    assert not _check_box_bounds(whole, piece((-1, 0), (2, 2)))


@pytest.mark.parametrize(("chunks", "good"), [
    ([((0,), (2,)), ((2,), (2,))], True), ([((0,), (2,))], False),
    ([((0,), (3,)), ((2,), (1,))], False), ([((0,), (2,)), ((2,), (3,))], False)])
def test_wholes(chunks, good):
    about = _create_default_local_metadata({"w": torch.ones(4)})
    about.state_dict_metadata["w"].chunks[:] = [piece(*chunk) for chunk in chunks]
    found = _validate_global_plan([SavePlan([])] * 2, about)
    assert (found == []) is good
