"""Samples of the ops of `flambeau/ops/view/scatter_views.py`."""
import numpy as np
from sample_tests import SampleTests
from samples import Samples, call

family = Samples()


def x(r, *shape):
    return np.asarray(r.rng.randn(*shape))


@family("select_scatter")
def _(r):
    return [call(x(r, 3, 4), x(r, 3), 1, 2), call(x(r, 3, 4), x(r, 4), -2, -1)]


@family("slice_scatter")
def _(r):
    return [call(x(r, 3, 4), x(r, 3, 2), 1, 1, 4, 2), call(x(r, 3, 4), x(r, 2, 4), start=1)]


@family("diagonal_scatter")
def _(r):
    return [call(x(r, 3, 4), x(r, 3)), call(x(r, 2, 3, 4), x(r, 3, 2), -1, 2, 0)]


class TestSamples(SampleTests):
    family = family
