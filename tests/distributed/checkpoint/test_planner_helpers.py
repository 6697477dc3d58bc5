"""Items of plans."""
from __future__ import annotations

import dataclasses

import pytest

import flambeau as torch
from flambeau.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)
from flambeau.distributed.checkpoint.planner import LoadItemType, SavePlan, WriteItemType
from flambeau.distributed.checkpoint.planner_helpers import (
    _compare_save_plans,
    _contains_usable_plan,
    _create_chunk_list,
    _create_default_metadata_only_plan,
    _create_read_items,
    _create_write_items,
    _init_state_dict,
    _merge_delta_local_plans,
    create_read_items_for_chunk_list,
)


@pytest.fixture
def alone():
    from flambeau import distributed as dist
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def piece(offsets, sizes):
    return ChunkStorageMetadata(torch.Size(offsets), torch.Size(sizes))


def test_what_is_written():
    (item,) = _create_write_items("w", torch.zeros(2, 3))
    assert item.index == MetadataIndex("w", [0, 0]) and item.type is WriteItemType.TENSOR
    assert item.tensor_data.chunk == piece((0, 0), (2, 3)) and item.tensor_data.size == (2, 3)
    (item,) = _create_write_items("x", [1])
    assert item.index == MetadataIndex("x") and item.tensor_data is None
    plan = _create_default_metadata_only_plan({"w": torch.zeros(1), "x": 1})
    assert [item.index.fqn for item in plan.items] == ["w", "x"]


def test_of_objects_that_say_it_themselves():
    class Own:
        def __create_write_items__(self, fqn, value):
            return [fqn, value]

        def __create_chunk_list__(self):
            return ["pieces"]
    own = Own()
    assert _create_write_items("x", own) == ["x", own]


def test_pieces():
    assert _create_chunk_list(torch.zeros(2, 3)) == [piece((0, 0), (2, 3))]
    assert _create_chunk_list(torch.zeros(())) == [piece((), ())]
    with pytest.raises(ValueError, match="Unsupported Type, expecting one of"):
        _create_chunk_list("x")


def test_what_is_read():
    whole = torch.arange(24).view(4, 6)
    saved = TensorStorageMetadata(TensorProperties(), whole.size(), [
        piece((0, 0), (2, 6)), piece((2, 0), (2, 3)), piece((2, 3), (2, 3))])
    wanted, room = [piece((1, 1), (3, 4)), piece((0, 0), (1, 1))], {}
    for number, chunk in enumerate(wanted):
        room[number] = torch.full(tuple(chunk.sizes), -1)
    for item in create_read_items_for_chunk_list("w", saved, wanted):
        chunk = saved.chunks[item.storage_index.index]
        source, target = whole, room[item.dest_index.index]
        for dim, length in enumerate(item.lengths):
            source = source.narrow(dim, chunk.offsets[dim] + item.storage_offsets[dim], length)
            target = target.narrow(dim, item.dest_offsets[dim], length)
        target.copy_(source)
    assert torch.equal(room[0], whole[1:4, 1:5]) and torch.equal(room[1], whole[:1, :1])


def test_what_is_read_for_values():
    (item,) = _create_read_items("x", BytesStorageMetadata(), 3)
    assert item.type is LoadItemType.BYTE_IO and item.lengths == (0,)
    about = TensorStorageMetadata(TensorProperties(), torch.Size([2]), [piece((0,), (2,))])
    (item,) = _create_read_items("w", about, torch.zeros(2))
    assert item.type is LoadItemType.TENSOR and item.lengths == (2,)
    with pytest.raises(ValueError, match=(
            "Invalid checkpoint metadata for w, expected BytesStorageMetadata but found")):
        _create_read_items("w", about, "no tensor")


def plan(size, **changes):
    return dataclasses.replace(SavePlan(_create_write_items("w", torch.zeros(size))), **changes)


def test_plans_are_compared():
    assert _compare_save_plans(plan(2), plan(2)) and not _compare_save_plans(plan(2), plan(3))
    assert not _compare_save_plans(plan(2), plan(2, usable=False))
    assert not _compare_save_plans(plan(2), plan(2, items=[]))


def test_plans_that_have_changed():
    none = SavePlan([], usable=False)
    assert not _contains_usable_plan([none, none]) and _contains_usable_plan([none, plan(2)])
    first, second, new = plan(1), plan(2), plan(3)
    assert _merge_delta_local_plans([first, second], [none, new]) == [first, new]


def test_tensors_get_memory(alone):
    state = {"a": torch.empty(2, device="meta"), "b": [torch.empty(3, device="meta"), 1],
             "c": {"d": (torch.empty(4, device="meta"), "x")}, "e": torch.ones(1)}
    kept = state["e"]
    _init_state_dict(state)
    assert {t.device.type for t in (state["a"], state["b"][0], state["c"]["d"][0])} == {"cpu"}
    assert state["c"]["d"][0].shape == (4,) and state["b"][1] == 1 and state["e"] is kept
