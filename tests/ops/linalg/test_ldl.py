"""Samples of the ops of `flambeau/ops/linalg/ldl.py`."""
import numpy as np
from matrices import lower_only, matrix, square
from sample_tests import SampleTests
from samples import Samples, call

family = Samples()

for _name in ("linalg.ldl_factor", "linalg.ldl_factor_ex"):
    lower_only(family, _name)


@family("linalg.ldl_solve")
def _(r):
    return [call(square(r), np.array([1, 2, 3], np.int32), matrix(r, 3, 2)).but(smooth=False)]


class TestSamples(SampleTests):
    family = family
