"""Derivatives by parameters: of incomplete gamma functions, of the zeta function."""
import mpmath as mp
import numpy as np
import pytest

from flambeau.kernels.pointwise.parameter_slopes import gamma_slope, zeta_slope


@pytest.mark.parametrize("a, x", [(0.3, 0.2), (2.5, 1.0), (2.5, 9.0), (40.0, 35.0), (0.5, 30.0)])
@pytest.mark.parametrize("n", [1, 2])
def test_incomplete_gamma(a, x, n):
    with mp.workdps(30):
        expected = float(mp.diff(lambda a: mp.gammainc(a, 0, x, regularized=True), a, n))
    found = gamma_slope(np.array([a]), np.array([x]), n, False)[0]
    assert found == pytest.approx(expected, rel=1e-8, abs=1e-13)


def test_relative_to_the_density():
    a, x = np.array([2.5]), np.array([1.5])
    density = float(mp.mpf(1.5) ** 1.5 * mp.e ** -1.5 / mp.gamma(2.5))
    whole = gamma_slope(a, x, 1, False)[0]
    assert gamma_slope(a, x, 1, True)[0] * density == pytest.approx(whole)


@pytest.mark.parametrize("s, q, n", [(2.0, 1.0, 1), (1.5, 0.3, 1), (3.0, 7.0, 2), (12.0, 0.5, 1)])
def test_zeta(s, q, n):
    expected = float(mp.zeta(s, q, n))
    assert zeta_slope(np.array([s]), np.array([q]), n)[0] == pytest.approx(expected, rel=1e-10)


def test_outside():
    assert gamma_slope(np.array([1.0]), np.array([0.0]), 1, False)[0] == 0
    assert np.isnan(gamma_slope(np.array([-1.0]), np.array([1.0]), 1, False)[0])
    assert gamma_slope(np.ones(2, np.float32), np.ones((3, 1), np.float32), 1, False).dtype == (
        np.float32)
