"""Samples of the ops of `flambeau/ops/indexing/slices.py`."""
import numpy as np
import pytest
from sample_tests import SampleTests
from samples import Samples, call

import flambeau as torch

family = Samples()


@family("index_select")
def _(r):
    return [call(r.real(2, 3), 1, np.array([2, 0, 2])), call(r.real(3), 0, np.array([1]))]


@family("index_add")
def _(r):
    return [call(r.real(2, 3), 1, np.array([2, 0, 2]), r.real(2, 3)),
            call(r.real(3, 2), 0, np.array([1]), r.real(1, 2), alpha=2.0)]


@family("index_fill")
def _(r):
    return [call(r.real(2, 3), 1, np.array([2, 0]), 1.5),
            call(r.real(2, 3), 1, np.array([2, 0]), r.real())]


@family("index_reduce")
def _(r):
    return [call(r.positive(2, 3), 1, np.array([2, 0]), r.positive(2, 2), way)
            for way in ("prod", "mean", "amax", "amin")]


class TestSamples(SampleTests):
    family = family


def test_a_number_has_one_slice():
    for index in (torch.tensor([0, 0]), torch.tensor([], dtype=torch.int64)):
        with pytest.raises(RuntimeError, match="Index to scalar can have only 1 value, got"):
            torch.tensor(3.0).index_select(0, index)


def test_an_index_cannot_be_filled_by_itself():
    index = torch.tensor([2, 1, 0])
    with pytest.raises(RuntimeError, match="unsupported operation"):
        index.index_fill_(0, index, 0)


def test_a_value_that_fills_a_place_twice_counts_once():
    value = torch.tensor(2.0, requires_grad=True)
    filled = torch.zeros(3, 2).index_fill(0, torch.tensor([1, 1, -2, 0]), value)
    filled.sum().backward()
    assert value.grad.item() == 4


@pytest.mark.parametrize("write", [
    lambda x, i: x.index_fill(0, i, 1.0), lambda x, i: x.index_fill_(0, i, 1.0),
    lambda x, i: x.index_copy(0, i, torch.ones(1, 4))])
def test_a_dimension_without_places_has_none_to_fill(write):
    with pytest.raises(RuntimeError, match=r"sizes \[1, 4\], strides \[0, 1\], storage offset 0"):
        write(torch.zeros(0, 4), torch.tensor([0]))
