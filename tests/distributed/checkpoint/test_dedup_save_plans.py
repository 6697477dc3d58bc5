"""What several processes have is written by one."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau.distributed.checkpoint._dedup_save_plans import dedup_save_plans
from flambeau.distributed.checkpoint.planner import SavePlan
from flambeau.distributed.checkpoint.planner_helpers import _create_write_items


def plan(**sizes):
    """A plan of tensors with so many elements; 0 is a value that is no tensor."""
    return SavePlan([item for name, size in sizes.items() for item in _create_write_items(
        name, torch.zeros(size) if size else "x")])


def kept(plans, **options):
    return ["".join(item.index.fqn for item in found.items)
            for found in dedup_save_plans(plans, **options)]


def test_what_one_has_stays():
    assert kept([plan(a=1, b=2), plan(c=3)]) == ["ab", "c"]
    assert kept([]) == [] and kept([plan(), plan()]) == ["", ""]


def test_the_one_with_least_to_write():
    both = plan(a=8, b=2, c=2, d=0)
    assert kept([both, both]) == ["a", "bcd"]
    assert kept([both, both], save_to_lowest_rank=True) == ["abcd", ""]


def test_plans_are_not_changed():
    plans = [plan(a=1), plan(a=1)]
    found = dedup_save_plans(plans)
    assert [len(one.items) for one in plans] == [1, 1] and len(found) == 2
    assert found[0].items == plans[0].items and found[1].items == []
    with pytest.raises(AttributeError):
        found[0].items = []
