"""When models are averaged."""
from __future__ import annotations

import warnings

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau.distributed.algorithms.model_averaging import averagers
from flambeau.testing._internal.distributed.fake_pg import FakeStore


@pytest.fixture
def two():
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
    yield
    dist.destroy_process_group()


def averaged(averager, steps):
    """The steps in which a parameter became a mean: half, as the other adds nothing."""
    parameter, found = torch.nn.Parameter(torch.ones(1)), []
    parameter.grad = torch.ones(1)
    for step in range(steps):
        parameter.data.fill_(1)
        averager.average_parameters([parameter])
        if parameter.item() == 0.5:
            found.append(step)
    return found


@pytest.mark.parametrize(("period", "warmup", "steps"), [
    (4, 0, [0, 4, 8]), (4, 3, [3, 7]), (2, 5, [5, 7, 9]), (100, 0, [0])])
def test_periods(two, period, warmup, steps):
    averager = averagers.PeriodicModelAverager(period, warmup)
    assert averaged(averager, 10) == steps and averager.step == 10


def test_refusals(two):
    with pytest.raises(ValueError, match="``warmup_steps`` must be a non-negative number"):
        averagers.PeriodicModelAverager(2, -1)
    with pytest.raises(ValueError, match="``period`` must be a positive value"):
        averagers.PeriodicModelAverager(0)
    with pytest.warns(UserWarning, match="When period is 1, no need to use model averaging"):
        averagers.PeriodicModelAverager(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        averagers.PeriodicModelAverager(2)
    with pytest.raises(TypeError, match="abstract"):
        averagers.ModelAverager()


def test_the_default_group_is_needed():
    with pytest.raises(TypeError, match="value was None when it should not be"):
        averagers.PeriodicModelAverager(4)
