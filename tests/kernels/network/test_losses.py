"""Losses and distances with their gradients: the native kernels against those in NumPy."""
import numpy as np
import pytest

from flambeau.kernels.linalg import distances
from flambeau.kernels.network import losses

random = np.random.RandomState(0)
REDUCTIONS = [losses.NONE, losses.MEAN, losses.SUM]


def close(found, expected):
    if not isinstance(found, tuple):
        found, expected = (found,), (expected,)
    for one, other in zip(found, expected):
        if other is None:
            assert one is None
            continue
        assert np.asarray(one).shape == np.asarray(other).shape
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-6)


def both(kernel, *args):
    found = kernel(*args)
    close(found, kernel.reference(*args))
    return found


def gradient_of(loss, reduction):
    return random.randn(*loss.shape).astype(loss.dtype) if reduction == losses.NONE else np.asarray(
        1.5, loss.dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_many_logits_and_extreme_ones(reduction, dtype):
    x = (random.randn(70_000) * 20).astype(dtype)
    x[:6] = 0, -0.0, 200, -200, np.inf, -np.inf
    y = random.rand(x.size).astype(dtype)
    y[4], y[5] = 1, 0               # of infinite logits other losses are infinite
    kernel = losses.binary_cross_entropy_with_logits
    found, expected = (f(x[6:], y[6:], None, None, reduction) for f in (kernel, kernel.reference))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(np.isnan(kernel(x[:6], y[:6], None, None, losses.NONE)),
                                  np.isnan(kernel.reference(x[:6], y[:6], None, None, losses.NONE)))
    p = random.rand(70_000).astype(dtype)
    p[:4] = 0, 1, 1e-30, 0.5
    kernel = losses.binary_cross_entropy
    found, expected = (f(p, y, None, reduction) for f in (kernel, kernel.reference))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("reduction", REDUCTIONS)
class TestLosses:
    def test_negative_log_likelihood(self, reduction, dtype):
        x, target = random.randn(3, 4, 2).astype(dtype), np.array([[0, 3], [2, -100], [1, 1]])
        for weight in (None, random.rand(4).astype(dtype)):
            loss, total = both(losses.nll_loss_forward, x, target, weight, reduction, -100)
            both(losses.nll_loss_backward, gradient_of(loss, reduction), x, target, weight, total,
                 reduction, -100)
        with pytest.raises(IndexError, match="Target 4 is out of bounds"):
            losses.nll_loss_forward(x, target + 1, None, reduction, -99)

    def test_margins(self, reduction, dtype):
        x, target = random.randn(3, 4).astype(dtype), np.array([0, 3, 1])
        for weight in (None, random.rand(4).astype(dtype)):
            for p in (1, 2):
                rest = (weight, p, 0.8, reduction)
                loss = both(losses.multi_margin_loss, x, target, *rest)
                both(losses.multi_margin_loss_backward, gradient_of(loss, reduction), x, target,
                     *rest)
        labels = np.array([[0, 2, -1, 1], [3, -1, 0, 0], [-1, 1, 1, 1]])
        loss, marks = both(losses.multilabel_margin_loss_forward, x, labels, reduction)
        both(losses.multilabel_margin_loss_backward, gradient_of(loss, reduction), x, labels, marks,
             reduction)
        with pytest.raises(RuntimeError, match="target out of range"):
            losses.multi_margin_loss(x, target + 1, None, 1, 1.0, reduction)

    def test_binary_cross_entropy(self, reduction, dtype):
        x, y = random.rand(2, 3).astype(dtype), random.rand(2, 3).astype(dtype)
        weight = random.rand(2, 3).astype(dtype)
        for w in (None, weight):
            loss = both(losses.binary_cross_entropy, x, y, w, reduction)
            g = gradient_of(loss, reduction)
            both(losses.binary_cross_entropy_backward, g, x, y, w, reduction)
            for p in (None, weight + 1):
                both(losses.binary_cross_entropy_with_logits, x - 0.5, y, w, p, reduction)
                both(losses.binary_cross_entropy_with_logits_backward, g, x - 0.5, y, w, p,
                     reduction)
        with pytest.raises(RuntimeError, match="all elements of input should be between 0 and 1"):
            losses.binary_cross_entropy(x + 1, y, None, reduction)

    @pytest.mark.parametrize("name, numbers", [
        ("mse_loss", ()), ("smooth_l1_loss", (0.7,)), ("huber_loss", (0.7,)),
        ("soft_margin_loss", ())])
    def test_element_by_element(self, name, numbers, reduction, dtype):
        x, y = random.randn(3, 40).astype(dtype), random.randn(3, 40).astype(dtype)
        loss = both(getattr(losses, name), x, y, reduction, *numbers)
        both(getattr(losses, f"{name}_backward"), gradient_of(loss, reduction), x, y, reduction,
             *numbers)


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.0, np.inf])
def test_distances(p):
    x, y = random.randn(2, 4, 3), random.randn(2, 5, 3)
    found = both(distances.cdist, x, y, p)
    both(distances.cdist_backward, random.randn(2, 4, 5), x, y, found, p)
    found = both(distances.pdist, x[0], p)
    both(distances.pdist_backward, random.randn(6), x[0], found, p)
