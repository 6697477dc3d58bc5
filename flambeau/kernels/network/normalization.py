"""Normalisations by mean and variance, or by the root of the mean square, with their gradients.

Every one subtracts a mean over some axes, divides by sqrt(variance + eps), and scales:
`y = (x - mean) * rstd * weight + bias`. With `z = (x - mean) * rstd`, `h = g * weight` and means
over the same axes,

    gx = rstd * (h - mean(h) - z * mean(h * z)),      gweight = sum(g * z),      gbias = sum(g).

Variances are computed in two passes. Statistics stay float32 for half floats.
"""

import math

import numpy as np

from flambeau.kernels.declaration import kernel, kernel_with_float32_results, kernel_with_narrow
from flambeau.kernels.dtypes import float_astype


@kernel_with_float32_results(1, 2)
def layer_norm(x, n_dims, weight, bias, eps):
    """Normalise over the last `n_dims` axes; returns y, mean and 1 / std.

    In the statistics those axes have size 1.
    """
    axes = tuple(range(x.ndim - n_dims, x.ndim))
    y, mean, _, rstd = _normalize(x, axes, eps)
    return _scale(y, weight, bias), mean, rstd


@kernel
def layer_norm_backward(g, x, n_dims, mean, rstd, weight):
    """Gradients of `layer_norm` in x, weight and bias."""
    split = x.ndim - n_dims
    z = (x - mean) * rstd
    h = g if weight is None else g * weight
    gx = _input_grad(h, z, rstd, tuple(range(split, x.ndim)))
    lead = tuple(range(split))
    return gx, (g * z).sum(axis=lead), g.sum(axis=lead)


@kernel_with_float32_results(1)
def rms_norm(x, n_dims, weight, eps):
    """Divide by the root mean square over the last `n_dims` axes; returns y and the factor."""
    axes = tuple(range(x.ndim - n_dims, x.ndim))
    eps = np.finfo(x.dtype).eps if eps is None else eps
    rrms = (1 / np.sqrt(np.square(x).mean(axis=axes, keepdims=True) + eps)).astype(x.dtype)
    return _scale(x * rrms, weight, None), rrms


@kernel
def rms_norm_backward(g, x, n_dims, rrms, weight):
    """Gradients of `rms_norm` in x and weight."""
    split = x.ndim - n_dims
    z = x * rrms
    h = g if weight is None else g * weight
    axes = tuple(range(split, x.ndim))
    gx = rrms * (h - z * (h * z).mean(axis=axes, keepdims=True))
    return gx, (g * z).sum(axis=tuple(range(split)))


def _narrow_batch_norm(x, weight, bias, eps):
    """PyTorch keeps the mean and 1 / std in the type of the input if no parameter is wider; for
    bfloat16 it rounds the sum of squares and the variance too."""
    wide = [None if a is None else float_astype(a, np.float32) for a in (x, weight, bias)]
    y, mean, var, rstd = batch_norm(*wide, eps)
    if x.size and all(p is None or p.dtype == x.dtype for p in (weight, bias)):
        if x.dtype != np.float16:
            count = np.float32(x.size // x.shape[1])
            var = _rounded(_rounded(var * count, x.dtype) / count, x.dtype)
        column, used = _column(x), _rounded(mean, x.dtype)
        rstd = _rounded(1 / np.sqrt(var + np.float32(eps)), x.dtype)
        slope = _scale(rstd, wide[1], None)
        start = _scale(-used * slope, None, wide[2])
        y = wide[0] * slope.reshape(column) + start.reshape(column)
    return float_astype(y, x.dtype), mean, var, rstd


def _rounded(values, dtype):
    return values.astype(dtype).astype(values.dtype)


@kernel_with_narrow(_narrow_batch_norm)
def batch_norm(x, weight, bias, eps):
    """Normalise each channel (axis 1) over all else.

    Returns y and, per channel, the mean, the biased variance and 1 / std.
    """
    axes = _all_but_channels(x)
    y, mean, var, rstd = _normalize(x, axes, eps)
    column = _column(x)
    y = _scale(y, _as(weight, column), _as(bias, column))
    return y, mean.reshape(-1), var.reshape(-1), rstd.reshape(-1)


@kernel
def batch_norm_backward(g, x, mean, rstd, weight):
    """Gradients of `batch_norm` in x, weight and bias, from what it returned."""
    axes, column = _all_but_channels(x), _column(x)
    rstd = rstd.reshape(column)
    z = (x - mean.reshape(column)) * rstd
    h = g if weight is None else g * weight.reshape(column)
    return _input_grad(h, z, rstd, axes), (g * z).sum(axis=axes), g.sum(axis=axes)


@kernel
def batch_norm_eval(x, mean, var, weight, bias, eps):
    """Normalise each channel (axis 1) by the given statistics."""
    column = _column(x)
    scale = (1 / np.sqrt(var + var.dtype.type(eps))).reshape(column)
    y = (x - mean.reshape(column)) * scale
    return _scale(y, _as(weight, column), _as(bias, column)).astype(x.dtype, copy=False)


@kernel
def batch_norm_eval_backward(g, x, mean, var, weight, eps):
    """Gradients of `batch_norm_eval` in x, weight and bias; the statistics are constants."""
    axes, column = _all_but_channels(x), _column(x)
    rstd = (1 / np.sqrt(var + var.dtype.type(eps))).reshape(column)
    z = (x - mean.reshape(column)) * rstd
    gx = g * rstd if weight is None else g * (rstd * weight.reshape(column))
    return np.ascontiguousarray(gx), (g * z).sum(axis=axes), g.sum(axis=axes)


@kernel_with_float32_results(1, 2)
def group_norm(x, groups, weight, bias, eps):
    """Normalise each sample's channels (axis 1) in groups; mean and 1 / std are (n, groups)."""
    n = x.shape[0]
    grouped = x.reshape(n, groups, _count(x, groups))
    y, mean, _, rstd = _normalize(grouped, (2,), eps)
    column = _column(x)
    y = _scale(y.reshape(x.shape), _as(weight, column), _as(bias, column))
    return y, mean.reshape(n, groups), rstd.reshape(n, groups)


@kernel
def group_norm_backward(g, x, groups, mean, rstd, weight):
    """Gradients of `group_norm` in x, weight and bias."""
    n, count, axes = x.shape[0], _count(x, groups), _all_but_channels(x)
    rstd = rstd.reshape(n, groups, 1)
    z = (x.reshape(n, groups, count) - mean.reshape(n, groups, 1)) * rstd
    h = g if weight is None else g * weight.reshape(_column(x))
    gx = _input_grad(h.reshape(n, groups, count), z, rstd, (2,)).reshape(x.shape)
    return gx, (g * z.reshape(x.shape)).sum(axis=axes), g.sum(axis=axes)


def _normalize(x, axes, eps):
    count = math.prod(x.shape[a] for a in axes)
    if x.size == 0:
        shape = tuple(1 if a in axes else s for a, s in enumerate(x.shape))
        nothing = np.full(shape, np.nan, x.dtype)
        return x.copy(), np.zeros_like(nothing), nothing, nothing
    mean = x.mean(axis=axes, keepdims=True)
    centered = x - mean
    var = np.square(centered).sum(axis=axes, keepdims=True) / x.dtype.type(count)
    rstd = 1 / np.sqrt(var + x.dtype.type(eps))
    return centered * rstd, mean, var, rstd


def _scale(y, weight, bias):
    if weight is not None:
        y = y * weight
    return y if bias is None else y + bias


def _input_grad(h, z, rstd, axes):
    if h.size == 0:
        return h.copy()
    return rstd * (
        h - h.mean(axis=axes, keepdims=True) - z * (h * z).mean(axis=axes, keepdims=True))


def _all_but_channels(x):
    return (0, *range(2, x.ndim))


def _column(x):
    """The shape in which one value a channel broadcasts against x."""
    return (-1, *(1,) * (x.ndim - 2))


def _as(values, shape):
    return None if values is None else values.reshape(shape)


def _count(x, groups):
    return math.prod(x.shape[1:]) // groups
