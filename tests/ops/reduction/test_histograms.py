"""Samples of the ops of `flambeau/ops/reduction/histograms.py`."""
import numpy as np
from sample_tests import SampleTests
from samples import Samples, call

import flambeau

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


def test_given_edges_are_given_back():
    edges = [flambeau.tensor([0.0, 0.5, 1.0]), flambeau.tensor([0.0, 0.3, 1.0])]
    found = flambeau.histogramdd(flambeau.tensor([[0.1, 0.2], [0.6, 0.7]]), edges)
    assert found.hist.tolist() == [[1, 0], [0, 1]]
    assert all(e is given for e, given in zip(found.bin_edges, edges))
    assert flambeau.histogram(flambeau.tensor([0.1]), edges[0]).bin_edges is not edges[0]
