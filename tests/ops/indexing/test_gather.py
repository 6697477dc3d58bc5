"""Samples of the ops of `flambeau/ops/indexing/gather.py`."""
import numpy as np
from sample_tests import SampleTests
from samples import Samples, call

family = Samples()

INDEX = np.array([[0, 2, 1], [1, 1, 0]])


@family("gather")
def _(r):
    return [call(r.real(2, 3), 1, INDEX), call(r.real(3, 3), 0, INDEX),
            call(r.real(), 0, np.zeros((), int))]


@family("scatter_add")
def _(r):
    return [call(r.real(2, 3), 1, INDEX, r.real(2, 3)), call(r.real(3, 3), 0, INDEX, r.real(2, 3))]


@family("scatter")
def _(r):
    index = np.array([[0, 2, 1], [1, 0, 2]])
    return [call(r.real(2, 3), 1, index, r.real(2, 3)), call(r.real(2, 3), 1, INDEX, 1.5)]


@family("scatter_reduce")
def _(r):
    return [call(r.distinct(2, 3), 1, INDEX, r.distinct(2, 3) + 0.17, way, include_self=own)
            for way in ("sum", "prod", "mean", "amax", "amin") for own in (True, False)]


class TestSamples(SampleTests):
    family = family
