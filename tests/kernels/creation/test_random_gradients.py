"""Slopes of beta samples by their parameters, at a fixed value of the distribution function."""
import mpmath as mp
import numpy as np
import pytest

from flambeau.kernels.creation.random_gradients import dirichlet_grad


@pytest.mark.parametrize("x, a, b", [(0.2, 0.7, 2.0), (0.9, 3.0, 1.5), (0.5, 1.0, 1.0),
                                     (1e-4, 0.3, 5.0), (0.999, 8.0, 0.4)])
def test_implicit_derivative(x, a, b):
    """dx/da = -(dF/da) / p(x), of the distribution function F; the kernel leaves out 1 - x."""
    def function(a):
        return mp.betainc(a, b, 0, x, regularized=True)
    density = mp.mpf(x) ** (a - 1) * (1 - mp.mpf(x)) ** (b - 1) / mp.beta(a, b)
    expected = -mp.diff(function, a) / density / (1 - x)
    found = dirichlet_grad(np.array([x]), np.array([a]), np.array([a + b]))
    assert found[0] == pytest.approx(float(expected), rel=1e-6)


def test_shapes_and_types():
    x = np.full((2, 3), 0.3, np.float32)
    found = dirichlet_grad(x, np.ones(3, np.float32), np.full((2, 1), 3, np.float32))
    assert found.shape == (2, 3) and found.dtype == np.float32 and np.ptp(found) == 0
