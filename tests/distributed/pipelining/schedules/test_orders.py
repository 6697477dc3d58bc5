"""Orders of the usual schedules, and what is wrong with others."""
from __future__ import annotations

import json

import pytest
from order_cases import DATA, parse, written

from flambeau.distributed.pipelining._schedule_visualizer import (
    add_schedule_op_spacing,
    get_schedule_ops,
)
from flambeau.distributed.pipelining.schedules import (
    _add_send_recv,
    _get_1f1b_rank_ops,
    _simulate_comms_compute,
    _validate_schedule,
)


@pytest.mark.parametrize("key", DATA["orders"])
def test_orders(key):
    name, ranks, microbatches, stages, options = json.loads(key)
    found = get_schedule_ops(name, ranks, microbatches, stages, **options)
    assert [written(actions) for actions in found] == DATA["orders"][key]


def test_1f1b_rank_ops():
    found = [written(_get_1f1b_rank_ops(
        2, 4, 5, 6, 5, rank, lambda step, rank=rank: step // 4 % 2 * 4 + rank,
        lambda step, rank=rank: (1 - (step - 5) // 4 % 2) * 4 + rank, waiting, bool(zero)))
        for rank in range(4) for waiting in (0, 2) for zero in (0, 1)]
    assert found == DATA["_get_1f1b_rank_ops"]


def test_impossible_orders():
    with pytest.raises(AssertionError, match="Malformed compute schedule"):
        _add_send_recv({0: parse("0B0 0F1"), 1: parse("1F0 1B0")}, lambda stage: stage, 2)
    with pytest.raises(ValueError, match="Schedule is not progressing"):
        _simulate_comms_compute({0: parse("0F0 0B0"), 1: parse("1F0")}, lambda stage: stage, 2)
    with pytest.raises(RuntimeError, match="possible deadlock"):
        add_schedule_op_spacing([parse("0B0")])


@pytest.mark.parametrize("orders, ranks, stages, count, message", [
    (["0F0 0B0"], 2, 2, 1, "incorrect number of ranks - expected 2, actual 1"),
    (["0F0 0B0", "1F0 1B0"], 2, 2, 2, "Got 1 _ComputationType.FORWARD microbatches for stage 0"),
    (["0F0 0B0 1F0", "1F0 1B0"], 2, 2, 1, "Stage 1 is assigned to both rank 1 and rank 0"),
    (["0B0 0F0", "1F0 1B0"], 2, 2, 1, "Running Full Backward for stage 0, microbatch 0 without"),
    (["0F0 0I0", "1F0 1B0"], 2, 2, 1, "I and W must have equal counts, but got I=1, W=0"),
    (["0F0 0W0 0I0", "1F0 1B0"], 2, 2, 1, "without first running Backward Input"),
    (["0F0 0B0", "1F0"], 2, 2, 1, "expected 1 total backwards"),
])
def test_validation(orders, ranks, stages, count, message):
    with pytest.raises(AssertionError, match=message):
        _validate_schedule(dict(enumerate(map(parse, orders))), ranks, stages, count)


def test_validation_finds_the_ranks():
    orders = {0: parse("0F0 2F0 2B0 0B0"), 1: parse("1F0 3F0 3I0 3W0 1B0")}
    assert _validate_schedule(orders, 2, 4, 1) == {0: 0, 1: 1, 2: 0, 3: 1}
