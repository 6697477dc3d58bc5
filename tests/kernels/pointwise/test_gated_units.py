"""Units whose slope is a parameter, or whose half is a gate."""
import numpy as np
import pytest

from flambeau.kernels.pointwise import gated_units


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_glu(axis, normal, derivative):
    x = normal((4, 6))
    a, b = np.split(x, 2, axis)
    np.testing.assert_allclose(gated_units.glu(x, axis), a / (1 + np.exp(-b)))
    g = normal(a.shape)
    slope = gated_units.glu_backward(g, x, axis)
    expected = derivative(lambda x: (g * gated_units.glu(x, axis)).sum(), x)
    np.testing.assert_allclose(slope, expected, rtol=1e-5, atol=1e-8)


def test_extreme_gates():
    assert gated_units.glu(np.array([2.0, 1000.0]), 0).tolist() == [2.0]
    assert gated_units.glu(np.array([2.0, -1000.0]), 0).tolist() == [0.0]


def test_prelu_slopes():
    x, weight = np.array([-2.0, 3.0]), np.array([0.25, 0.25])
    by_x, by_weight = gated_units.prelu_backward(np.array([1.0, 10.0]), x, weight)
    np.testing.assert_allclose(by_x, [0.25, 10.0])
    np.testing.assert_allclose(by_weight, [-2.0, 0.0])
