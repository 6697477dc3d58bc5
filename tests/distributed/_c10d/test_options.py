"""What collectives can be told."""
from __future__ import annotations

from datetime import timedelta

import pytest

from flambeau import distributed as dist

UNSET = timedelta(milliseconds=-1)


@pytest.mark.parametrize(("name", "fields"), [
    ("AllreduceOptions", {"reduceOp": dist.ReduceOp.SUM}),
    ("AllreduceCoalescedOptions", {"reduceOp": dist.ReduceOp.SUM}),
    ("ReduceOptions", {"reduceOp": dist.ReduceOp.SUM, "rootRank": 0, "rootTensor": 0}),
    ("ReduceScatterOptions", {"reduceOp": dist.ReduceOp.SUM}), ("AllToAllOptions", {}),
    ("BroadcastOptions", {"rootRank": 0, "rootTensor": 0}), ("GatherOptions", {"rootRank": 0}),
    ("ScatterOptions", {"rootRank": 0}), ("BarrierOptions", {"device_ids": []})])
def test_defaults(name, fields):
    options = getattr(dist, name)()
    for field, value in fields.items():
        assert getattr(options, field) == value
    assert options.timeout == UNSET and options.asyncOp is True
    options.timeout, options.asyncOp = timedelta(seconds=3), False
    assert (options.timeout, options.asyncOp) == (timedelta(seconds=3), False)
    assert getattr(dist, name)().timeout == UNSET


def test_fields_are_set():
    options = dist.ReduceOptions()
    options.reduceOp, options.rootRank, options.rootTensor = dist.ReduceOp.MAX, 2, 1
    assert (options.reduceOp, options.rootRank, options.rootTensor) == (dist.ReduceOp.MAX, 2, 1)
    options = dist.BarrierOptions()
    options.device_ids = [1, 2]
    assert options.device_ids == [1, 2] and dist.BarrierOptions().device_ids == []
