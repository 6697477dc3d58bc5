"""Samples of the ops of `flambeau/ops/linalg/added_products.py`."""
import numpy as np
from matrices import both, products
from sample_tests import SampleTests
from samples import Samples, call

family = Samples()


@family("addmm")
def _(r):
    return both(r, (2, 2), (2, 3), (3, 2), draw="real") + both(
        r, (2,), (2, 3), (3, 2), draw="real", beta=0.5, alpha=2)


products(family, (2, 3), (2,), (3,), beta=2, alpha=3)("addr")
products(family, (2, 4), (5, 2, 3), (5, 3, 4), beta=2, alpha=3)("addbmm")
products(family, (5, 2, 4), (5, 2, 3), (5, 3, 4), beta=2, alpha=3)("baddbmm")


@family("addmv")
def _(r):
    return both(r, (2,), (2, 3), (3,), beta=0.5, alpha=2.0) + both(r, (), (2, 3), (3,)) + [
        call(np.array([np.nan, 1.0]), r.real(2, 3), r.real(3), beta=0).but(smooth=False)]


class TestSamples(SampleTests):
    family = family
