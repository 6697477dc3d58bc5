"""Samples of the ops of `flambeau/ops/pointwise/comparison.py`."""
import numpy as np
from sample_tests import SampleTests
from samples import CORNERS, Samples, call, inf, nan

family = Samples()

family.unary("isnan", "isinf", "isfinite", "isreal", "logical_not", more=CORNERS)
family.unary("isposinf", "isneginf", "signbit", complex=False, more=CORNERS)
family.binary("maximum", "minimum", "fmax", "fmin", complex=False, domain="distinct", more=[
    ([1.0, 2.0, nan, 3.0, inf], [1.0, 3.0, 2.0, nan, inf])])
family.binary("eq", "ne", number=2.5, more=[([1.0, nan, inf], [1.0, nan, inf])])
family.binary("lt", "le", "gt", "ge", complex=False, number=0.5,
              more=[([1.0, nan, inf], [1.0, nan, inf])])
family.binary("logical_and", "logical_or", "logical_xor",
              more=[([0.0, 1.0, 0.0, nan], [0.0, 0.0, 2.0, 1.0])])


@family("isclose")
def _(r):
    x = r.real(5)
    return [call(x, x + 1e-9), call(x, x + 1e-3, rtol=1e-2),
            call(np.array([nan, inf, 1.0]), np.array([nan, inf, 1.0]), equal_nan=True),
            call(r.integers(0, 5, 4), r.integers(0, 5, 4)), call(r.bools(4), r.bools(4)),
            call(r.complex(3), r.complex(3), atol=2.0)]


@family("allclose")
def _(r):
    x = r.real(5)
    return [call(x, x + 1e-9), call(x, x + 1e-3)]


@family("is_nonzero")
def _(r):
    return [call(r.real(1)), call(np.zeros(()))]


family.unbatched = ("allclose", "is_nonzero")


class TestSamples(SampleTests):
    family = family
