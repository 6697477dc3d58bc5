"""Softmax, its logarithm, logsumexp and cross entropy, with their gradients."""

import numpy as np

from flambeau.kernels.declaration import kernel, kernel_with_float32_results, kernel_with_narrow
from flambeau.kernels.dtypes import float_astype


@kernel
def softmax(x, axis):
    """exp(x) / sum(exp(x)) along `axis`, shifted by the maximum so that nothing overflows."""
    if x.ndim == 0 or x.size == 0:
        return np.asarray(np.exp(x - x))
    result = np.exp(x - x.max(axis=axis, keepdims=True))
    result /= result.sum(axis=axis, keepdims=True)
    return result


@kernel
def softmax_backward(g, y, axis):
    """Gradient of softmax from its result `y`: y * (g - sum(g * y))."""
    if g.ndim == 0:
        return np.asarray(y * (g - g * y))
    gy = g * y
    return gy - y * gy.sum(axis=axis, keepdims=True)


@kernel
def masked_softmax(x, mask, axis):
    """Softmax of what is not masked; zero elsewhere, NaN where all is."""
    shown = np.where(mask, -np.inf, x)
    result = np.exp(shown - shown.max(axis=axis, keepdims=True, initial=-np.inf))
    return result / result.sum(axis=axis, keepdims=True)


def _narrow_log_softmax(x, axis):
    """Along the last axis PyTorch rounds the sum of a row, and its logarithm, before it uses it."""
    wide = float_astype(x, np.float32)
    if not x.size or not x.ndim or axis % x.ndim < x.ndim - 1:
        return float_astype(log_softmax(wide, axis), x.dtype)
    exact = log_softmax(wide, axis)
    log_sum = -exact.max(axis=-1, keepdims=True)
    total = np.exp(log_sum).astype(x.dtype)
    exact += log_sum - np.log(total).astype(np.float32)
    return float_astype(exact, x.dtype)


@kernel_with_narrow(_narrow_log_softmax)
def log_softmax(x, axis):
    """x - logsumexp(x) along `axis`."""
    if x.ndim == 0 or x.size == 0:
        return np.asarray(x - x)
    shifted = x - x.max(axis=axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))


@kernel
def log_softmax_backward(g, y, axis):
    """Gradient of log_softmax from its result `y`: g - exp(y) * sum(g)."""
    if g.ndim == 0:
        return np.asarray(g - np.exp(y) * g)
    return g - np.exp(y) * g.sum(axis=axis, keepdims=True)


@kernel
def logsumexp(x, axis, keepdims=False):
    """log(sum(exp(x))) over `axis`, an int or several; -inf where there is nothing to sum."""
    if x.ndim == 0:
        return np.asarray(np.log(np.exp(x - x)) + x)
    if x.size == 0:
        return np.asarray(np.log(np.exp(x).sum(axis=axis, keepdims=keepdims)))
    largest = x.max(axis=axis, keepdims=True)
    largest = np.where(np.isinf(largest), 0, largest).astype(x.dtype)
    total = np.exp(x - largest).sum(axis=axis, keepdims=True)
    result = np.log(total) + largest
    return result if keepdims else np.asarray(result.squeeze(axis))


@kernel_with_float32_results(1)
def cross_entropy(logits, target, weight, ignore_index, label_smoothing):
    """Losses of the rows of `logits` (n, c) for classes `target` (n,), and row statistics.

    A row's loss is -weight[t] * log_softmax(row)[t]; with label smoothing s it is 1 - s of that
    plus s / c of the same summed over all classes. A row whose target is `ignore_index` has loss 0.
    The statistics, (2, n), are for the gradient: each row's maximum m, and log(sum(exp(row - m))).
    """
    n, c = logits.shape
    rows, classes, used = _picked(target, n, c, ignore_index)
    largest = logits.max(axis=1) if c else np.zeros(n, logits.dtype)
    shifted = logits - largest[:, None]
    logsum = np.log(np.exp(shifted).sum(axis=1))
    picked = logsum - shifted[rows, classes]
    losses = picked if weight is None else picked * weight[classes]
    if label_smoothing:
        each = logsum[:, None] - shifted
        smooth = each.sum(axis=1) if weight is None else (each * weight).sum(axis=1)
        losses = (1 - label_smoothing) * losses + label_smoothing / c * smooth
    losses = np.where(used, losses, 0).astype(logits.dtype)
    return losses, np.stack([largest, logsum])


@kernel
def cross_entropy_backward(g, logits, target, stats, weight, ignore_index, label_smoothing):
    """Gradient of `cross_entropy` in the logits; `g`, of the losses, is (n,) or 0-d for all."""
    n, c = logits.shape
    rows, classes, used = _picked(target, n, c, ignore_index)
    probability = np.exp(logits - stats[0][:, None] - stats[1][:, None])
    row_weight = 1 if weight is None else weight[classes]
    main = g * (1 - label_smoothing) * row_weight * used
    scale = main
    if label_smoothing:
        smooth = g * (label_smoothing / c) * used
        scale = main + smooth * (c if weight is None else weight.sum())
    result = probability * np.asarray(np.broadcast_to(scale, (n,)), logits.dtype)[:, None]
    result[rows, classes] -= np.asarray(main, logits.dtype)
    if label_smoothing:
        smooth = np.asarray(np.broadcast_to(smooth, (n,)), logits.dtype)[:, None]
        result -= smooth if weight is None else smooth * weight
    result[~used] = 0
    return result.astype(logits.dtype, copy=False)


@kernel
def nll_loss(log_probabilities, target, weight, ignore_index):
    """-weight[t] * log_probabilities[:, t]; those are (n, c, …), the classes `target` (n, …)."""
    c = log_probabilities.shape[1]
    used = target != ignore_index
    _check_targets(target, used, c)
    classes = np.where(used, target, 0)
    picked = (np.take_along_axis(log_probabilities, np.expand_dims(classes, 1), 1).squeeze(1) if c
              else np.zeros(target.shape, log_probabilities.dtype))
    losses = -picked if weight is None else -picked * weight[classes]
    return np.where(used, losses, 0).astype(log_probabilities.dtype, order="C")


@kernel
def picked_backward(g, target, weight, shape, ignore_index):
    """Gradient of `nll_loss` in its input of the given shape; `g` is broadcast to the losses."""
    used = target != ignore_index
    classes = np.where(used, target, 0)
    values = -np.broadcast_to(g, target.shape) * used
    if weight is not None:
        values = values * weight[classes]
    result = np.zeros(shape, g.dtype)
    if result.size:
        np.put_along_axis(result, np.expand_dims(classes, 1), np.expand_dims(values, 1), 1)
    return result


def _picked(target, n, c, ignore_index):
    used = target != ignore_index
    _check_targets(target, used, c)
    return np.arange(n), np.where(used, target, 0), used


def _check_targets(target, used, c):
    wrong = used & ((target < 0) | (target >= c))
    if wrong.any():
        raise IndexError(f"Target {target[wrong][0]} is out of bounds.")
