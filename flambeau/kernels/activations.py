"""Activation functions that are neither ufuncs nor native yet, with their gradients."""
import numpy as np

from flambeau.kernels.network import kernel, mover

_FAR = 80.0  # from here on log(1 + exp(x)) is x in every floating type


@kernel
def hardsigmoid(x):
    """min(max(x + 3, 0), 6) / 6."""
    return np.minimum(np.maximum(x + 3, 0), 6) / 6


@kernel
def hardsigmoid_backward(g, x):
    """The slope is 1/6 between -3 and 3."""
    return np.where((x > -3) & (x < 3), g / 6, np.zeros((), g.dtype))


@kernel
def hardswish(x):
    """x * hardsigmoid(x)."""
    return x * np.minimum(np.maximum(x + 3, 0), 6) / 6


@kernel
def hardswish_backward(g, x):
    """The slope is 0 up to -3, (2 x + 3) / 6 up to 3, and 1 from there."""
    middle = g * (x / 3 + x.dtype.type(0.5))
    return np.where(x <= -3, np.zeros((), g.dtype), np.where(x < 3, middle, g))


@kernel
def softplus(x):
    """log(1 + exp(x)), never infinite where x is not."""
    return np.where(x > _FAR, x, np.log1p(np.exp(np.minimum(x, x.dtype.type(_FAR)))))


@kernel
def mish(x):
    """x * tanh(softplus(x))."""
    return x * np.tanh(softplus.reference(x))


@kernel
def mish_backward(g, x):
    """With t = tanh(softplus(x)): t + x * sigmoid(x) * (1 - t²)."""
    t = np.tanh(softplus.reference(x))
    return g * (t + x * sigmoid(x) * (1 - t * t))


@kernel
def logsigmoid(x):
    """-softplus(-x)."""
    return np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x)))


@kernel
def logsigmoid_backward(g, x):
    """The slope is sigmoid(-x)."""
    return g * sigmoid(-x)


@mover
def hardshrink(x, limit):
    """x, but 0 from -limit to limit."""
    return np.where((x >= -limit) & (x <= limit), np.zeros((), x.dtype), x)


@kernel
def softshrink(x, limit):
    """x moved towards 0 by limit, but not past it."""
    limit = x.dtype.type(limit)
    return np.where(x > limit, x - limit, np.where(x < -limit, x + limit, x * 0))


@mover
def shrink_backward(g, x, limit):
    """The gradient outside of -limit to limit; of hardshrink and softshrink alike."""
    return np.where((x >= -limit) & (x <= limit), np.zeros((), g.dtype), g)


@kernel
def prelu(x, weight):
    """x above 0, weight * x below."""
    return np.where(x > 0, x, weight * x)


@kernel
def prelu_backward(g, x, weight):
    """Gradients of `prelu` in x and, in the shape of x, in the weight."""
    positive = x > 0
    return np.where(positive, g, weight * g), np.where(positive, np.zeros((), g.dtype), x * g)


@kernel
def glu(x, axis):
    """The first half along `axis` times the sigmoid of the second."""
    a, b = np.split(x, 2, axis)
    return a * sigmoid(b)


@kernel
def glu_backward(g, x, axis):
    """g * s and g * a * s * (1 - s), with s = sigmoid(b), side by side."""
    a, b = np.split(x, 2, axis)
    s = sigmoid(b)
    return np.concatenate([g * s, g * a * s * (1 - s)], axis)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))
