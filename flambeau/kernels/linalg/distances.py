"""Distances between all rows of matrices, with gradients."""
import numpy as np

from flambeau.kernels.declaration import kernel


@kernel
def cdist(x, y, p):
    """p-norms of the differences of rows: x (..., m, k), y (..., n, k) to (..., m, n)."""
    if p == 2 and (x.shape[-2] > 25 or y.shape[-2] > 25):
        return _euclidean(x, y)
    return _lengths(_differences(x, y), p)


@kernel
def cdist_backward(g, x, y, distances, p):
    """The gradient of `cdist` in the first matrix."""
    if p == 2 and min(x.shape[-2:]) and y.shape[-2]:
        scale = np.where(distances == 0, 0, g / np.where(distances == 0, 1, distances))
        return x * scale.sum(-1)[..., None] - np.matmul(scale, y)
    slope = _slope(_differences(x, y), distances, p) * g[..., None]
    return slope.sum(-2).astype(x.dtype)


@kernel
def pdist(x, p):
    """p-norms of the differences of all pairs of rows."""
    first, second = np.triu_indices(len(x), 1)
    return _lengths(x[first] - x[second], p)


@kernel
def pdist_backward(g, x, distances, p):
    """Gradient of `pdist`."""
    first, second = np.triu_indices(len(x), 1)
    slope = _slope(x[first] - x[second], distances, p) * g[:, None]
    result = np.zeros_like(x)
    np.add.at(result, first, slope)
    np.subtract.at(result, second, slope)
    return result


def _differences(x, y):
    return x[..., :, None, :] - y[..., None, :, :]


def _euclidean(x, y):
    """√(|x|² - 2 x·y + |y|²), by a product of matrices."""
    squares = np.square(x).sum(-1)[..., :, None] + np.square(y).sum(-1)[..., None, :]
    squares = squares - 2 * np.matmul(x, y.swapaxes(-1, -2))
    return np.sqrt(np.maximum(squares, 0))


def _lengths(d, p):
    if p == 0:
        return (d != 0).sum(-1).astype(d.dtype)
    if not d.shape[-1]:
        return np.zeros(d.shape[:-1], d.dtype)
    if p == 1:
        return np.abs(d).sum(-1)
    if p == 2:
        return np.sqrt(np.square(d).sum(-1))
    if np.isinf(p):
        return np.abs(d).max(-1)
    return (np.abs(d) ** p).sum(-1) ** (1 / p)


def _slope(d, distances, p):
    """The derivative of a distance in its difference; 0 where the distance is 0."""
    if p == 0:
        return np.zeros_like(d)
    if p == 1:
        return np.sign(d)
    r = distances[..., None]
    if np.isinf(p):
        largest = np.abs(d) == r
        return np.sign(d) * largest / np.maximum(largest.sum(-1, keepdims=True), 1)
    safe = np.where(r == 0, 1, r)
    if p == 2:
        return np.where(r == 0, 0, d / safe)
    return np.where((r == 0) | (d == 0), 0, np.sign(d) * (np.abs(d) / safe) ** (p - 1))
