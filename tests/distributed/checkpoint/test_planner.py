"""Plans."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau.distributed.checkpoint.planner import (
    BytesIOWriteData,
    LoadItemType,
    LoadPlan,
    LoadPlanner,
    SavePlan,
    SavePlanner,
    WriteItem,
    WriteItemType,
)
from flambeau.distributed.checkpoint.planner_helpers import _create_write_items


def test_how_much_is_written():
    (item,) = _create_write_items("w", torch.zeros(3, 4, dtype=torch.bfloat16))
    assert item.tensor_storage_size() == 24
    (item,) = _create_write_items("s", torch.zeros((), dtype=torch.float64))
    assert item.tensor_storage_size() == 8
    (item,) = _create_write_items("x", "words")
    assert item.tensor_storage_size() is None and item.type is WriteItemType.BYTE_IO
    assert WriteItem(item.index, item.type, BytesIOWriteData(3)).bytes_io_data.nbytes == 3


def test_plans():
    plan = SavePlan([])
    assert plan.usable and plan.storage_data is plan.planner_data is None
    assert LoadPlan([]) == LoadPlan([], None, None)
    with pytest.raises(AttributeError):
        plan.items = [1]
    assert [kind.name for kind in LoadItemType] == ["TENSOR", "BYTE_IO"]
    assert [kind.name for kind in WriteItemType] == ["TENSOR", "SHARD", "BYTE_IO"]


def test_planners_of_the_user():
    with pytest.raises(TypeError, match="abstract"):
        SavePlanner()
    with pytest.raises(NotImplementedError, match=r"LoadPlanner\.resolve_bytes is not implemented"):
        LoadPlanner.resolve_bytes(None, None)
