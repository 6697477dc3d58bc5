"""Samples of the ops of `flambeau/ops/reduction/segments.py`."""
import numpy as np
from sample_tests import SampleTests
from samples import Samples, call

family = Samples()


@family("segment_reduce")
def _(r):
    lengths, bounds = np.array([2, 0, 3]), np.array([[0, 1, 4], [1, 1, 5]])
    return [call(r.distinct(5, 2), kind, lengths=lengths, **start).but(smooth=kind != "mean")
            for kind in ("sum", "mean", "max", "min", "prod")
            for start in ({}, {"initial": 0.3})] + [
        call(r.distinct(2, 5, 2), kind, offsets=bounds, axis=1) for kind in ("sum", "prod")]


class TestSamples(SampleTests):
    family = family
