"""Samples of the ops of `flambeau/ops/python/facts.py`."""
from sample_tests import SampleTests
from samples import Samples, call

family = Samples()


@family("range")
def _(r):
    return [call(1, 4), call(0.5, 2, 0.25), call(3, -1, -2)]


class TestSamples(SampleTests):
    family = family
