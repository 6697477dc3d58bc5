import itertools

import numpy as np
import pytest

from flambeau.kernels.network import convolution as conv

HOW = [
    ((1, 1), (0, 0), (1, 1), 1),
    ((2, 1), (1, 2), (1, 2), 1),
    ((1, 3), (2, 1), (2, 1), 2),
]


def by_loops(x, w, stride, padding, dilation, groups):
    """A 2-d convolution from its definition."""
    n, o, c = len(x), len(w), w.shape[1]
    out = conv.output_shape(x.shape, w.shape, stride, padding, dilation, False, (0, 0), groups)
    y = np.zeros(out)
    places = itertools.product(range(n), range(o), *map(range, out[2:]), *map(range, w.shape[1:]))
    for b, f, i, j, k, u, v in places:
        row = i * stride[0] - padding[0] + u * dilation[0]
        column = j * stride[1] - padding[1] + v * dilation[1]
        if 0 <= row < x.shape[2] and 0 <= column < x.shape[3]:
            y[b, f, i, j] += x[b, f // (o // groups) * c + k, row, column] * w[f, k, u, v]
    return y


@pytest.mark.parametrize("stride, padding, dilation, groups", HOW)
def test_definition(normal, stride, padding, dilation, groups):
    x, w = normal((2, 4, 6, 7)), normal((6, 4 // groups, 3, 2))
    expected = by_loops(x, w, stride, padding, dilation, groups)
    for version in (conv.correlate, conv.correlate.reference):
        np.testing.assert_allclose(version(x, w, stride, padding, dilation, groups), expected)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("stride, padding, dilation, groups", HOW)
def test_gradients_are_adjoint(normal, transposed, stride, padding, dilation, groups):
    x = normal((2, 4, 6, 7))
    w = normal((4, 6 // groups, 3, 2) if transposed else (6, 4 // groups, 3, 2))
    how = stride, padding, dilation, transposed, (0, 0), groups
    y = conv.convolution(x, w, *how)
    g = normal(y.shape)
    inner = np.sum(g * y)
    gx = conv.convolution_input_grad(g, w, x.shape, *how)
    gw = conv.convolution_weight_grad(g, x, w.shape, *how)
    assert gx.shape == x.shape and gw.shape == w.shape
    np.testing.assert_allclose(np.sum(gx * x), inner)
    np.testing.assert_allclose(np.sum(gw * w), inner)


def test_infinity_stays_where_it_is(normal):
    """What lies beside a window never gets into it, not even times 0."""
    x, w = normal((1, 4, 5, 5)), normal((4, 1, 3, 3))
    x[0, 0, 2, 4] = np.inf
    for groups, weights in ((4, w), (1, np.repeat(w, 4, axis=1))):
        y = conv.correlate(x, weights, (1, 1), (1, 1), (1, 1), groups)
        assert np.isfinite(y[0, 0, :, :3]).all()
        assert not np.isfinite(y[0, 0, 1:4, 3:]).any()
        g = np.ones_like(y)
        g[..., 3:] = 0
        left = conv.weigh(x[..., :4].copy(), g[..., :4].copy(), weights.shape, (1, 1), (1, 1),
                          (1, 1), groups)  # fmt: skip
        assert np.isfinite(left).all()


def test_columns_and_back(normal):
    x = normal((2, 3, 6, 5))
    how = (3, 2), (1, 1), (1, 0), (2, 1)
    columns = conv.im2col(x, *how)
    assert columns.shape == (2, 18, 12)
    g = normal(columns.shape)
    np.testing.assert_allclose(np.sum(conv.col2im(g, (6, 5), *how) * x), np.sum(g * columns))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
def test_no_samples(dtype):
    x, w = np.zeros((0, 4, 6, 6), dtype), np.ones((2, 4, 3, 3), dtype)
    how = (1, 1), (0, 0), (1, 1), False, (0, 0), 1
    y = conv.convolution(x, w, *how)
    assert y.shape == (0, 2, 4, 4) and y.dtype == dtype
    assert conv.convolution_input_grad(y, w, x.shape, *how).shape == x.shape
    assert not conv.convolution_weight_grad(y, x, w.shape, *how).any()
