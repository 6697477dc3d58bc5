"""Samples of the ops of `flambeau/ops/python/facts.py`."""
from sample_tests import SampleTests
from samples import Samples, call

import flambeau

family = Samples()


@family("range")
def _(r):
    return [call(1, 4), call(0.5, 2, 0.25), call(3, -1, -2)]


class TestSamples(SampleTests):
    family = family


def test_numbers_of_unknown_origin():
    assert flambeau.sym_fresh_size(3) == 3 and isinstance(flambeau.sym_fresh_size(3), int)
    assert isinstance(flambeau.sym_fresh_size(2.5), float)
