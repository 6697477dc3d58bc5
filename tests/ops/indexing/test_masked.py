"""Samples of the ops of `flambeau/ops/indexing/masked.py`."""
import numpy as np
from sample_tests import SampleTests
from samples import Samples, call

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
