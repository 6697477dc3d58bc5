"""Orders with what is sent and received."""
from __future__ import annotations

import json

import pytest
from order_cases import DATA, parse, written

from flambeau.distributed.pipelining import schedules
from flambeau.distributed.pipelining.schedules import _simulate_comms_compute


@pytest.mark.parametrize("name", DATA["actions"])
def test_lowering(name):
    options = () if name == "_merge_bw" else (2,)
    found = [written(getattr(schedules, name)(parse(text), *options))
             for text in DATA["actions"][name]]
    assert found == DATA["lowered"][name]


@pytest.mark.parametrize("key", [key for key in DATA["orders"] if "with_comms" in key])
def test_a_lowered_order_does_not_wait_for_ever(key):
    name, ranks, _, stages, _ = json.loads(key)
    count = ranks * stages
    rank_of = ((lambda stage: min(stage, count - 1 - stage)) if "V" in name
               else (lambda stage: stage % ranks))
    orders = {}
    for rank, text in enumerate(DATA["orders"][key]):
        orders[rank] = []
        for action in parse(text):
            parts = action.sub_actions or (action,)
            orders[rank] += [part for part in parts if part.computation_type.name not in (
                "UNSHARD", "RESHARD", "REDUCE_GRAD")]
    steps = _simulate_comms_compute(orders, rank_of, count)
    for rank, actions in orders.items():
        assert [action for action in steps[rank] if action is not None] == actions
