"""Samples of the ops of `flambeau/ops/pointwise/elementary.py`."""
import numpy as np
from sample_tests import SampleTests
from samples import CORNERS, Samples, inf

import flambeau as torch

family = Samples()

family.unary("exp", "sin", "cos", "sinh", "cosh", "tanh", "atan", "asinh", "sigmoid", "exp2",
             "expm1", more=CORNERS)
family.unary("tan", "angle")
family.unary("log", "log2", "log10", "sqrt", domain="positive", more=CORNERS)
family.unary("log1p", domain="positive", more=CORNERS)
family.unary("asin", "acos", "atanh", domain="unit", more=CORNERS)
family.unary("acosh", domain="above", bounds=(1.0,), more=CORNERS)
family.unary("erf", "erfc", "deg2rad", "rad2deg", complex=False, more=CORNERS)
family.unary("erfinv", domain="unit", complex=False, more=CORNERS)
family.binary("atan2", complex=False,
              more=[([0.0, -0.0, 1.0, inf], [-1.0, -1.0, 0.0, inf])])
for _name in ("special.expit", "special.exp2", "special.expm1", "special.log1p", "special.erf",
              "special.erfc"):
    family.unary(_name, domain="positive", complex=False)


class TestSamples(SampleTests):
    family = family


def test_log1p_of_complex_numbers_near_zero():
    z = torch.tensor([1e-19 + 1e-18j, 1e-18 + 1e-15j, 0.2 + 1.2j], dtype=torch.complex128)
    wanted = torch.tensor([1e-19 + 1e-18j, 1e-18 + 1e-15j, 0.5 * np.log(2.88) + 0.25j * np.pi],
                          dtype=z.dtype)
    torch.testing.assert_close(z.log1p(), wanted, rtol=1e-12, atol=0)
