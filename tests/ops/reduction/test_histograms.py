"""Samples of the ops of `flambeau/ops/reduction/histograms.py`."""
import numpy as np
from sample_tests import SampleTests
from samples import Samples, call

family = Samples()


@family("histc")
def _(r):
    return [call(r.real(20), 5), call(r.real(20), 4, -1, 1), call(np.ones(3), 3)]


@family("histogram")
def _(r):
    return [call(r.real(20), 5), call(r.real(20), 4, range=(-1.0, 1.0)),
            call(r.real(20), np.array([-2.0, 0.0, 1.0])), call(r.real(9), 3, density=True),
            call(r.real(9), 3, weight=r.positive(9))]


@family("histogramdd")
def _(r):
    return [call(r.real(20, 2), [3, 4]), call(r.real(20, 2), [2, 2], range=[-1.0, 1.0, -2.0, 2.0]),
            call(r.real(10, 2), [np.array([-2.0, 0.0, 2.0]), np.array([-3.0, 3.0])])]


family.unbatched = ("histc", "histogram", "histogramdd")


class TestSamples(SampleTests):
    family = family
