"""Samples of the ops of `flambeau/ops/special/polynomials.py`."""
import numpy as np
from sample_tests import SampleTests
from samples import Samples, call

family = Samples()

for _kind in ("t", "u", "v", "w"):
    for _prefix in ("special.", "special.shifted_"):
        @family(f"{_prefix}chebyshev_polynomial_{_kind}")
        def _(r):
            degrees = r.integers(0, 6, 3)
            return [call(r.unit(2, 3), n) for n in (0, 1, 2, 5, -1)] + [
                call(r.real(3), 3), call(r.unit(2, 3), degrees), call(0.3, degrees),
                call(np.array([1.0, -1.0, 0.0]), 3).but(smooth=False)]
for _name in ("hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l",
              "legendre_polynomial_p"):
    @family(f"special.{_name}")
    def _(r):
        degrees = r.integers(0, 6, 3)
        return [call(r.unit(2, 3), n) for n in (0, 1, 2, 5, -1)] + [
            call(r.unit(2, 3), degrees), call(0.3, degrees)]


class TestSamples(SampleTests):
    family = family
