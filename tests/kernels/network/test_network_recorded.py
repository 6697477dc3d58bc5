"""Kernels of neural networks, both versions of each, against what PyTorch computed."""

from pathlib import Path

import numpy as np
import pytest

from flambeau.kernels.moving import indexing
from flambeau.kernels.network import (
    attention,
    convolution,
    normalization,
    pooling,
    recurrent,
    resampling,
    softmax,
)
from flambeau.kernels.reduction import sorting

DATA = np.load(Path(__file__).parents[2] / "data" / "network_kernels.npz")


class Case:
    """The arrays of a case as attributes."""

    def __init__(self, name):
        self.__dict__.update(
            {key.split("/")[1]: DATA[key] for key in DATA.files if key.split("/")[0] == name}
        )


def close(found, expected, tolerance=2e-5):
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@pytest.fixture(params=["native", "reference"])
def version(request):
    """A function that picks the version of a kernel under test."""
    if request.param == "reference":
        return lambda kernel: kernel.reference

    def native(kernel):
        if kernel.native is None:
            pytest.skip("no native version here")
        return kernel

    return native


def test_convolution():
    c = Case("conv2d")
    how = (2, 1), (1, 1), (1, 2), False, (0, 0), 2
    close(convolution.convolution(c.x, c.w, *how), c.y)
    close(convolution.convolution_input_grad(c.g, c.w, c.x.shape, *how), c.gx)
    close(convolution.convolution_weight_grad(c.g, c.x, c.w.shape, *how), c.gw)


def test_transposed_convolution():
    c = Case("conv_transpose1d")
    how = (2,), (1,), (1,), True, (1,), 1
    close(convolution.convolution(c.x, c.w, *how), c.y)
    close(convolution.convolution_input_grad(c.g, c.w, c.x.shape, *how), c.gx)
    close(convolution.convolution_weight_grad(c.g, c.x, c.w.shape, *how), c.gw)


def test_max_pooling(version):
    c = Case("max_pool2d")
    values, where = version(pooling.max_pool)(c.x, (3, 3), (2, 2), (1, 1), (1, 1), True)
    close(values, c.y)
    np.testing.assert_array_equal(where, c.i)
    c = Case("adaptive_max_pool2d")
    values, where = version(pooling.adaptive_max_pool)(c.x, (3, 4))
    close(values, c.y)
    np.testing.assert_array_equal(where, c.i)


def test_average_pooling(version):
    c = Case("avg_pool2d")
    close(version(pooling.avg_pool)(c.x, (3, 3), (2, 2), (1, 1), True, False, None), c.y)
    c = Case("adaptive_avg_pool2d")
    close(version(pooling.adaptive_avg_pool)(c.x, (3, 4)), c.y)


def test_fractional_pooling():
    c = Case("fractional_max_pool2d")
    values, where = pooling.fractional_max_pool(c.x, (2, 2), (4, 3), c.s)
    close(values, c.y)
    np.testing.assert_array_equal(where, c.i)


def test_layer_norm(version):
    c = Case("layer_norm")
    y, mean, scale = version(normalization.layer_norm)(c.x, 1, c.w, c.b, 1e-5)
    close(y, c.y)
    found = version(normalization.layer_norm_backward)(c.g, c.x, 1, mean, scale, c.w)
    for got, expected in zip(found, (c.gx, c.gw, c.gb)):
        close(got, expected)


def test_batch_norm(version):
    c = Case("batch_norm")
    y, mean, _, scale = version(normalization.batch_norm)(c.x, c.w, c.b, 1e-5)
    close(y, c.y)
    found = version(normalization.batch_norm_backward)(c.g, c.x, mean, scale, c.w)
    for got, expected in zip(found, (c.gx, c.gw, c.gb)):
        close(got, expected)


def test_group_norm(version):
    c = Case("group_norm")
    y, mean, scale = version(normalization.group_norm)(c.x, 2, c.w, c.b, 1e-5)
    close(y, c.y)
    found = version(normalization.group_norm_backward)(c.g, c.x, 2, mean, scale, c.w)
    for got, expected in zip(found, (c.gx, c.gw, c.gb)):
        close(got, expected)


def test_softmax_of_extremes(version):
    c = Case("softmax")
    close(version(softmax.softmax)(c.x, 1), c.y)
    close(version(softmax.log_softmax)(c.x, 1), c.log)
    close(version(softmax.logsumexp)(c.x, 1), c.sum)


def test_cross_entropy(version):
    c = Case("cross_entropy")
    losses, stats = version(softmax.cross_entropy)(c.x, c.t, c.w, -100, 0.1)
    close(losses, c.y)
    back = version(softmax.cross_entropy_backward)(c.g, c.x, c.t, stats, c.w, -100, 0.1)
    close(back, c.gx)


def test_attention(version):
    c = Case("attention")
    out, total = version(attention.scaled_dot_product_attention)(c.q, c.k, c.v, c.m)
    close(out, c.y)
    back = version(attention.scaled_dot_product_attention_backward)
    for got, expected in zip(back(c.g, c.q, c.k, c.v, out, total, c.m), (c.gq, c.gk, c.gv)):
        close(got, expected)


def test_sort(version):
    c = Case("sort")
    for descending, values, where in ((False, c.up, c.up_i), (True, c.down, c.down_i)):
        found, at = version(sorting.sort)(c.x, 1, descending, True)
        np.testing.assert_array_equal(found, values)
        np.testing.assert_array_equal(at, where)


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
def test_scatter(version, reduce, include_self):
    c = Case(f"scatter_{reduce}_{include_self}")
    found = version(indexing.scatter_)(c.x.copy(), 0, c.i, c.s, reduce, include_self)
    close(found, c.y)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic", "area"])
@pytest.mark.parametrize("aligned", [False, True])
def test_interpolate(mode, aligned):
    if aligned and not mode.startswith("bi"):
        return
    c = Case(f"interpolate_{mode}_{aligned}")
    how = mode, aligned, (1.7, 0.6)
    close(resampling.interpolate(c.x, c.y.shape[2:], *how), c.y)
    close(resampling.interpolate_backward(c.g, c.x.shape, *how), c.gx)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_antialias(mode):
    c = Case(f"antialias_{mode}")
    close(resampling.interpolate(c.x, (3, 7), mode, False, None, True), c.y)
    close(resampling.interpolate_backward(c.g, c.x.shape, mode, False, None, True), c.gx)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_grid_sample(version, mode, padding):
    c = Case(f"grid_sample_{mode}_{padding}")
    close(version(resampling.grid_sample)(c.x, c.grid, mode, padding, False), c.y, 1e-4)
    found = version(resampling.grid_sample_backward)(c.g, c.x, c.grid, mode, padding, False)
    for got, expected in zip(found, (c.gx, c.gg)):
        close(got, expected, 2e-4)


def test_lstm():
    c = Case("lstm")
    weights = c.w_ih, c.w_hh
    y, _, _, saved, cells = recurrent.lstm_layer(c.x, c.h, c.c, *weights, c.b_ih, c.b_hh)
    close(y, c.y)
    none = np.zeros_like(c.h)
    found = recurrent.lstm_layer_backward(c.g, none, none, c.x, c.h, c.c, *weights, y, saved, cells)
    for got, expected in zip((found[0], *found[3:]), (c.gx, c.g_ih, c.g_hh, c.gb_ih)):
        close(got, expected)


def test_gru():
    c = Case("gru")
    weights = c.w_ih, c.w_hh
    y, _, saved = recurrent.gru_layer(c.x, c.h, *weights, c.b_ih, c.b_hh)
    close(y, c.y)
    found = recurrent.gru_layer_backward(c.g, np.zeros_like(c.h), c.x, c.h, *weights, y, saved)
    expected = (c.gx, c.g_ih, c.g_hh, c.gb_ih, c.gb_hh)
    for got, want in zip((found[0], *found[2:]), expected):
        close(got, want)
