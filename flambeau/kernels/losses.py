"""Losses element by element and their derivatives; what reduces them is not here."""
import numpy as np

from flambeau.kernels.activations import logsigmoid
from flambeau.kernels.network import kernel, stepwise


@stepwise
def soft_margin(x, y):
    """log(1 + exp(-x * y)); infinite, as in PyTorch, where the exponential is."""
    return np.log1p(np.exp(-y * x))


@kernel
def soft_margin_slope(x, y):
    """The derivative of `soft_margin` in x."""
    return -y / (1 + np.exp(x * y))


@kernel
def binary_cross_entropy(x, y, weight):
    """-(y log x + (1 - y) log(1 - x)), logarithms cut off at -100."""
    low = _as(-100, x)
    loss = (y - 1) * np.maximum(np.log1p(-x), low) - y * np.maximum(np.log(x), low)
    return loss if weight is None else loss * weight


@kernel
def binary_cross_entropy_backward(g, x, y, weight, needs):
    """Gradients in x and y; where x is 0 or 1 a denominator of 1e-12 stands in."""
    g = g if weight is None else g * weight
    gx = g * (x - y) / np.maximum((1 - x) * x, _as(1e-12, x)) if needs[0] else None
    gy = g * (np.log1p(-x) - np.log(x)) if needs[1] else None
    return gx, gy


@stepwise
def binary_cross_entropy_with_logits(x, y, weight, pos_weight):
    """(1 - y) x + log(1 + exp(-x)), the latter times 1 + (pos_weight - 1) y."""
    negative = -logsigmoid(x)
    if pos_weight is not None:
        negative = negative * ((pos_weight - 1) * y + 1)
    loss = (1 - y) * x + negative
    return loss if weight is None else loss * weight


@kernel
def binary_cross_entropy_with_logits_backward(g, x, y, weight, pos_weight, needs):
    """Gradients in x and y."""
    g = g if weight is None else g * weight
    sigmoid = 1 / (1 + np.exp(-x))
    if pos_weight is None:
        return (g * (sigmoid - y) if needs[0] else None), (-g * x if needs[1] else None)
    scaled = pos_weight * y
    gx = g * ((scaled + 1 - y) * sigmoid - scaled) if needs[0] else None
    negative = np.maximum(-x, 0) + np.log1p(np.exp(-np.abs(x)))
    gy = g * ((pos_weight - 1) * negative - x) if needs[1] else None
    return gx, gy


@kernel
def all_within_unit(x):
    """Are all elements in [0, 1]? NaN is not."""
    return bool(((x >= 0) & (x <= 1)).all())


def _as(value, like):
    return like.dtype.type(value)
