"""Samples of the ops of `flambeau/ops/pointwise/rounding.py`."""
import numpy as np
from sample_tests import SampleTests
from samples import CORNERS, Samples, call, inf

family = Samples()

family.unary("floor", "ceil", "trunc", "round", "frac", complex=False, more=CORNERS)


@family("special.round")
def _(r):
    return [call(r.real(2, 3), decimals=1), call(r.real(3) * 100, decimals=-1),
            call(np.array([0.5, 1.5, -2.5])).but(smooth=False)]


family.binary("remainder", "fmod", "floor_divide", complex=False, number=0.7, more=[
    ([5.0, -5.0, 5.0, -5.0, 0.3, inf, 1.0], [3.0, 3.0, -3.0, -3.0, 0.1, 2.0, 0.0])])


class TestSamples(SampleTests):
    family = family
