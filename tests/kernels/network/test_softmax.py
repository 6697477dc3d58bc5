import mpmath
import numpy as np
import pytest

from flambeau.kernels.network import softmax as sm


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gradients(normal, derivative, axis):
    x, g = normal((3, 4)), normal((3, 4))
    for name in ("softmax", "log_softmax"):
        forward, backward = getattr(sm, name), getattr(sm, name + "_backward")
        expected = derivative(lambda x, f=forward: np.sum(g * f(x, axis)), x)
        np.testing.assert_allclose(backward(g, forward(x, axis), axis), expected, atol=1e-7)


def test_accuracy():
    """Within a few units in the last place of the true values, small probabilities too."""
    x = np.linspace(-40, 40, 81, dtype=np.float32)[None]
    for dtype in (np.float32, np.float64):
        found = sm.softmax(x.astype(dtype), 1)[0]
        exact = [mpmath.exp(float(v)) for v in x[0]]
        total = mpmath.fsum(exact)
        error = max(abs(f / float(e / total) - 1) for f, e in zip(found.astype(np.float64), exact))
        assert error < 12 * np.finfo(dtype).eps


def test_subnormal_results():
    x = np.array([[0.0, -95.0, -103.0, -200.0]], np.float32)
    np.testing.assert_allclose(
        sm.softmax(x, 1)[0], np.exp(x[0].astype(np.float64)), rtol=0, atol=3e-45
    )


def test_logsumexp_over_axes(normal):
    x = normal((2, 3, 4))
    expected = np.log(np.exp(x).sum(axis=(0, 2)))
    np.testing.assert_allclose(sm.logsumexp(x, (0, 2)), expected)
    np.testing.assert_allclose(sm.logsumexp(x, (0, 2), True), expected.reshape(1, 3, 1))
    assert sm.logsumexp(np.zeros((0, 3)), 0).tolist() == [-np.inf] * 3


def test_scalars():
    x = np.asarray(2.0)
    assert sm.softmax(x, 0) == 1 and sm.log_softmax(x, 0) == 0 and sm.logsumexp(x, 0) == 2
    assert sm.softmax_backward(x, sm.softmax(x, 0), 0) == 0


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("weighted", [False, True])
def test_cross_entropy(normal, derivative, smoothing, weighted):
    x, g, target = normal((5, 4)), normal(5), np.array([0, 3, -1, 2, 2])
    weight = np.array([0.5, 1, 2, 0.1]) if weighted else None
    rest = target, weight, -1, smoothing
    losses, stats = sm.cross_entropy(x, *rest)
    log_p = sm.log_softmax(x, 1)
    w = np.ones(4) if weight is None else weight
    for row, t in enumerate(target):
        each = -w * log_p[row]
        expected = 0 if t < 0 else (1 - smoothing) * each[t] + smoothing / 4 * each.sum()
        np.testing.assert_allclose(losses[row], expected)
    found = sm.cross_entropy_backward(g, x, target, stats, weight, -1, smoothing)
    expected = derivative(lambda x: np.sum(g * sm.cross_entropy(x, *rest)[0]), x)
    np.testing.assert_allclose(found, expected, atol=1e-7)


def test_nll(normal):
    x, target = normal((2, 3, 4)), np.array([[0, 1, 2, -100], [2, 2, 0, 1]])
    losses = sm.nll_loss(x, target, None, -100)
    assert losses[0, 3] == 0 and losses[1, 0] == -x[1, 2, 0]
    back = sm.picked_backward(np.ones_like(losses), target, None, x.shape, -100)
    np.testing.assert_allclose(np.sum(back * x), losses.sum())


def test_class_out_of_bounds():
    for f in (sm.cross_entropy, sm.cross_entropy.reference):
        with pytest.raises(IndexError, match="Target 3 is out of bounds"):
            f(np.zeros((2, 3), np.float32), np.array([0, 3]), None, -100, 0.0)
