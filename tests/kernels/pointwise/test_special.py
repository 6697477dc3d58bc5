"""Special functions of elements, against mpmath."""
import mpmath as mp
import numpy as np
import pytest

from flambeau.kernels.pointwise import special as kernels

X = np.array([-7.5, -2.2, -0.4, 0.3, 1.7, 6.0])


@pytest.mark.parametrize("name, exact", [
    ("airy_ai", mp.airyai), ("spherical_j0", lambda x: mp.sin(x) / x), ("sinc", mp.sincpi)])
def test_values(name, exact):
    expected = [float(exact(mp.mpf(x))) for x in X]
    np.testing.assert_allclose(getattr(kernels, name)(X), expected, rtol=1e-9, atol=1e-12)


def test_at_zero():
    zero = np.zeros(1)
    assert kernels.sinc(zero) == kernels.spherical_j0(zero) == 1
    assert kernels.entr(zero) == 0 and kernels.entr(-np.ones(1)) == -np.inf
    assert kernels.xlogy(zero, zero) == 0 and kernels.xlog1py(zero, -np.ones(1)) == 0
    assert np.isnan(kernels.xlogy(zero, np.array([np.nan]))).all()


@pytest.mark.parametrize("n", [0, 1, 3])
def test_polygamma(n):
    x = np.array([0.4, 1.0, 7.5])
    expected = [float(mp.polygamma(n, v)) for v in x]
    np.testing.assert_allclose(kernels.polygamma(x, n), expected, rtol=1e-9)


def test_logit():
    p = np.array([0.0, 0.25, 1.0])
    found = kernels.logit(p, np.array(0.25))
    np.testing.assert_allclose(found, [-np.log(3), -np.log(3), np.log(3)])


def test_parts_of_numbers():
    mantissa, exponent = kernels.frexp(np.array([0.0, 8.0, -0.75]))
    assert mantissa.tolist() == [0.0, 0.5, -0.75] and exponent.tolist() == [0, 4, 0]
    assert kernels.round_decimals(np.array([1.2345, -9.876]), 2).tolist() == [1.23, -9.88]
    assert kernels.round_decimals(np.array([1234.0]), -2).tolist() == [1200.0]
    x = np.array([np.nan, np.inf, -np.inf, 1.0])
    assert kernels.nan_to_num(x, 5.0, 6.0, 7.0).tolist() == [5, 6, 7, 1]
