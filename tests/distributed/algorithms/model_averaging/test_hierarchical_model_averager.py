"""Averages over groups of several sizes."""
from __future__ import annotations

from collections import OrderedDict

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau.distributed.algorithms.model_averaging.hierarchical_model_averager import (
    HierarchicalModelAverager,
)
from flambeau.testing._internal.distributed.fake_pg import FakeStore


@pytest.fixture
def eight():
    dist.init_process_group("fake", store=FakeStore(), rank=5, world_size=8)
    yield
    dist.destroy_process_group()


def test_the_largest_period_that_fits_counts(eight):
    averager = HierarchicalModelAverager(OrderedDict([(2, 2), (4, 4), (8, 8)]), warmup_steps=2)
    assert [dist.get_process_group_ranks(group)
            for group in averager.period_process_group_dict.values()] == [
                [4, 5], [4, 5, 6, 7], list(range(8))]
    parameter, sizes = torch.nn.Parameter(torch.ones(1)), []
    parameter.grad = torch.ones(1)
    for _ in range(10):
        parameter.data.fill_(1)
        averager.average_parameters([parameter])
        sizes.append(round(1 / parameter.item()))
    assert sizes == [1, 1, 2, 1, 4, 1, 2, 1, 8, 1]


@pytest.mark.parametrize(("periods", "options", "words"), [
    ({}, {}, "``period_group_size_dict`` must not be empty"), (None, {}, "must not be empty"),
    ({0: 8}, {}, "The minimum period in arg ``period_group_size_dict`` must be a positive value"),
    ({2: 2, 4: 4}, {}, "must be equal to the size of arg ``process_group`` 8"),
    ({2: 8}, {"warmup_steps": -1}, "``warmup_steps`` must be a non-negative number")])
def test_refusals(eight, periods, options, words):
    with pytest.raises(ValueError, match=words):
        HierarchicalModelAverager(periods, **options)


def test_a_period_of_one_says_so(eight):
    with pytest.warns(UserWarning, match="When the maximum period in arg"):
        HierarchicalModelAverager({1: 8})
