"""Orders as tables."""
from __future__ import annotations

import pytest
from order_cases import DATA, parse, written

from flambeau.distributed.pipelining._schedule_visualizer import get_schedule_ops
from flambeau.distributed.pipelining.schedules import _format_pipeline_order


@pytest.mark.parametrize("name", DATA["spaced"])
def test_orders_with_spaces(name):
    found = get_schedule_ops(name, 2, 4, add_spacing=True)
    assert [written(actions) for actions in found] == DATA["spaced"][name]


def test_orders_of_one_stage_a_rank_with_spaces():
    found = get_schedule_ops("GPipe", 2, 2, add_spacing=True)
    assert [written(actions) for actions in found] == [
        "0F0 0F1 _ _ _ 0B0 0B1", "_ 1F0 1F1 1B0 1B1 _"]


def test_table():
    orders = {0: parse("0F0 0F1 0B0 0B1"), 1: parse("_ 1F0 1B1 1F1 1B0")}
    assert _format_pipeline_order(orders, 2) == (
        "        Rank 0 Rank 1\n"
        "Step 0: 0F0          \n"
        "Step 1: 0F1    1F0   \n"
        "Step 2: 0B0    1B1    <-- ERROR HERE\n"
        "Step 3: 0B1    1F1   \n"
        "Step 4:        1B0   \n")
