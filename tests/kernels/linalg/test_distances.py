"""Distances between rows, and their slopes."""
import numpy as np
import pytest

from flambeau.kernels.linalg.distances import cdist, cdist_backward, pdist, pdist_backward

NORMS = [0.0, 1.0, 1.5, 2.0, 3.0, np.inf]


@pytest.mark.parametrize("p", NORMS)
def test_norms_of_differences(p, normal):
    x, y = normal((2, 4, 3)), normal((2, 5, 3))
    found = cdist(x, y, p)
    expected = np.linalg.norm(x[:, :, None] - y[:, None], p, axis=-1) if p else \
        np.full((2, 4, 5), 3.0)
    np.testing.assert_allclose(found, expected)
    rows, columns = np.triu_indices(4, 1)
    np.testing.assert_allclose(pdist(x[0], p), cdist(x[0], x[0], p)[rows, columns])


@pytest.mark.parametrize("p", NORMS[1:])
def test_slopes(p, normal, derivative):
    x, y, weights = normal((3, 2)), normal((4, 2)), normal((3, 4))
    slope = cdist_backward(weights, x, y, cdist(x, y, p), p)
    np.testing.assert_allclose(slope, derivative(lambda x: (weights * cdist(x, y, p)).sum(), x),
                               rtol=1e-5, atol=1e-7)
    w = normal(3)
    slope = pdist_backward(w, x, pdist(x, p), p)
    np.testing.assert_allclose(slope, derivative(lambda x: (w * pdist(x, p)).sum(), x),
                               rtol=1e-5, atol=1e-7)


def test_no_distance_has_no_slope():
    x = np.ones((2, 3))
    slope = cdist_backward(np.ones((2, 2)), x, x, cdist(x, x, 2.0), 2.0)
    assert not slope.any()


def test_empty():
    assert cdist(np.ones((0, 3)), np.ones((2, 3)), 2.0).shape == (0, 2)
    assert not cdist(np.ones((2, 0)), np.ones((2, 0)), 2.0).any()
