import numpy as np
import pytest

from flambeau.kernels.network import normalization as norm


def check(derivative, forward, found, inputs, g):
    """Each of the gradients `found` is the derivative of sum(g * forward) in its input."""
    for i, gradient in enumerate(found):

        def value(x, i=i):
            return np.sum(g * forward(*inputs[:i], x, *inputs[i + 1 :]))

        np.testing.assert_allclose(gradient, derivative(value, inputs[i]), rtol=1e-5, atol=1e-7)


def test_layer_norm(normal, derivative):
    x, w, b, g = normal((3, 2, 4)), normal((2, 4)), normal((2, 4)), normal((3, 2, 4))
    y, mean, scale = norm.layer_norm(x, 2, w, b, 1e-3)
    assert mean.shape == scale.shape == (3, 1, 1)
    z = (x - x.mean((1, 2), keepdims=True)) / np.sqrt(x.var((1, 2), keepdims=True) + 1e-3)
    np.testing.assert_allclose(y, z * w + b)
    found = norm.layer_norm_backward(g, x, 2, mean, scale, w)
    check(derivative, lambda *a: norm.layer_norm(a[0], 2, *a[1:], 1e-3)[0], found, (x, w, b), g)


def test_rms_norm(normal, derivative):
    x, w, g = normal((3, 5)), normal(5), normal((3, 5))
    y, scale = norm.rms_norm(x, 1, w, 1e-3)
    np.testing.assert_allclose(y, x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-3) * w)
    found = norm.rms_norm_backward(g, x, 1, scale, w)
    check(derivative, lambda x, w: norm.rms_norm(x, 1, w, 1e-3)[0], found, (x, w), g)


@pytest.mark.parametrize("shape", [(5, 3), (2, 3, 4), (2, 3, 2, 2)])
def test_batch_norm(normal, derivative, shape):
    x, w, b, g = normal(shape), normal(3), normal(3), normal(shape)
    y, mean, var, scale = norm.batch_norm(x, w, b, 1e-3)
    axes = (0, *range(2, x.ndim))
    np.testing.assert_allclose(mean, x.mean(axes))
    np.testing.assert_allclose(var, x.var(axes))
    np.testing.assert_allclose(y, norm.batch_norm_eval(x, mean, var, w, b, 1e-3))
    found = norm.batch_norm_backward(g, x, mean, scale, w)
    check(derivative, lambda *a: norm.batch_norm(*a, 1e-3)[0], found, (x, w, b), g)
    found = norm.batch_norm_eval_backward(g, x, mean, var, w, 1e-3)

    def still(x, w, b):
        return norm.batch_norm_eval(x, mean, var, w, b, 1e-3)

    check(derivative, still, found, (x, w, b), g)


def test_group_norm(normal, derivative):
    x, w, b, g = normal((2, 4, 3)), normal(4), normal(4), normal((2, 4, 3))
    y, mean, scale = norm.group_norm(x, 2, w, b, 1e-3)
    assert mean.shape == scale.shape == (2, 2)
    first = norm.layer_norm(x[:, :2], 2, None, None, 1e-3)[0]
    np.testing.assert_allclose((y[:, :2] - b[:2, None]) / w[:2, None], first)
    found = norm.group_norm_backward(g, x, 2, mean, scale, w)
    check(derivative, lambda *a: norm.group_norm(a[0], 2, *a[1:], 1e-3)[0], found, (x, w, b), g)


def test_variance_far_from_zero():
    """Two passes lose nothing where the mean is a million times the deviation."""
    x = (1e6 + np.arange(8, dtype=np.float32))[None]
    y, _, _ = norm.layer_norm(x, 1, None, None, 0.0)
    np.testing.assert_allclose(y[0], (np.arange(8) - 3.5) / np.arange(8).std(), rtol=1e-5)


def test_nothing_to_normalise():
    y, mean, scale = norm.layer_norm(np.zeros((0, 3), np.float32), 1, None, None, 1e-5)
    assert y.shape == (0, 3) and mean.shape == scale.shape == (0, 1)
    y, mean, scale = norm.layer_norm(np.zeros((2, 0), np.float32), 1, None, None, 1e-5)
    assert y.shape == (2, 0) and np.isnan(scale).all() and not mean.any()
