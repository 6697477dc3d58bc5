"""Samples of the ops of `flambeau/ops/indexing/masked.py`."""
import numpy as np
import pytest
from sample_tests import SampleTests
from samples import Samples, call

import flambeau as torch

family = Samples()


@family("take")
def _(r):
    return [call(r.real(2, 3), np.array([[0, 5], [5, 2]]))]


INDEX = np.array([[0, 2, 1], [1, 1, 0]])


@family("take_along_dim")
def _(r):
    return [call(r.real(2, 3), INDEX, 1), call(r.real(2, 3), np.array([1, 4]))]


@family("Tensor.put")
def _(r):
    return [call(r.real(2, 3), np.array([0, 5]), r.real(2)),
            call(r.real(2, 3), np.array([0, 0]), r.real(2), True)]


@family("masked_select")
def _(r):
    return [call(r.real(2, 3), np.array([[True, False, True], [False, True, False]]))]


@family("Tensor.masked_scatter")
def _(r):
    return [call(r.real(2, 3), np.array([True, False, True]), r.real(4))]


family.unbatched = ("masked_select",)


class TestSamples(SampleTests):
    family = family


def test_there_is_nothing_to_take_from_an_empty_tensor_nor_to_put_into_it():
    empty, place = torch.zeros(0), torch.tensor([0])
    with pytest.raises(IndexError, match=r"take\(\): tried to take from an empty tensor"):
        empty.take(place)
    with pytest.raises(IndexError, match=r"put_\(\): Tried to put elements into an empty tensor"):
        empty.put(place, torch.ones(1))


def test_what_is_put_keeps_the_order_in_memory():
    x = torch.zeros(2, 3).t()
    put = x.put(torch.tensor([1]), torch.ones(1))
    assert put.stride() == (1, 3) and put[0, 1] == 1
