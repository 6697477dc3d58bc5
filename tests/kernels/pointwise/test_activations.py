"""Activations: closed forms, extremes, and slopes by finite differences."""
import math

import numpy as np
import pytest

from flambeau.kernels.pointwise import activations as kernels

X = np.array([-30.0, -3.5, -1.0, -0.2, 0.3, 1.0, 2.7, 25.0])
FORMS = {
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)), "relu": lambda x: max(x, 0.0),
    "gelu": lambda x: x * 0.5 * math.erfc(-x / math.sqrt(2)),
    "gelu_tanh": lambda x: 0.5 * x * (1 + math.tanh(
        math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "silu": lambda x: x / (1 + math.exp(-x)), "softplus": lambda x: math.log1p(math.exp(x)),
    "mish": lambda x: x * math.tanh(math.log1p(math.exp(x))),
    "logsigmoid": lambda x: -math.log1p(math.exp(-x)),
    "leaky_relu": lambda x: x if x > 0 else 0.01 * x,
    "elu": lambda x: x if x > 0 else math.expm1(x),
    "hardtanh": lambda x: min(max(x, -1.0), 1.0),
    "hardsigmoid": lambda x: min(max(x / 6 + 0.5, 0.0), 1.0),
    "hardswish": lambda x: x * min(max(x / 6 + 0.5, 0.0), 1.0),
}


@pytest.mark.parametrize("name", FORMS)
def test_closed_forms(name):
    expected = [FORMS[name](x) for x in X]
    np.testing.assert_allclose(getattr(kernels, name)(X), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", [
    "gelu", "gelu_tanh", "silu", "hardsigmoid", "hardswish", "softplus", "leaky_relu", "elu",
    "mish", "logsigmoid"])
def test_slopes(name, derivative):
    x = X[1:-1].copy()
    found = getattr(kernels, f"{name}_backward")(np.full(x.shape, 2.0), x)
    expected = 2 * derivative(lambda x: getattr(kernels, name)(x).sum(), x)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-8)


def test_slopes_of_results():
    y = kernels.sigmoid(X)
    np.testing.assert_allclose(kernels.sigmoid_backward(np.ones(8), y), y * (1 - y))
    np.testing.assert_allclose(kernels.tanh_backward(np.ones(8), np.tanh(X)), 1 - np.tanh(X) ** 2)
    assert kernels.relu_backward(np.ones(3), np.array([0.0, 2.0, 0.0])).tolist() == [0, 1, 0]


def test_shrinking():
    x = np.array([-2.0, -0.5, 0.5, 2.0])
    assert kernels.hardshrink(x, 1.0).tolist() == [-2, 0, 0, 2]
    assert kernels.softshrink(x, 1.0).tolist() == [-1, 0, 0, 1]
    assert kernels.threshold(x, 0.0, 7.0).tolist() == [7, 7, 0.5, 2]


@pytest.mark.parametrize("name", FORMS)
def test_nan_stays(name):
    assert np.isnan(getattr(kernels, name)(np.array([np.nan]))).all()
