"""Activation functions that have no native version yet, with their gradients."""
import numpy as np

from flambeau import kernels
from flambeau.kernels.network import kernel

_FAR = 80.0  # from here on log(1 + exp(x)) is x in every floating type


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


def prelu_backward(g, x, weight):
    """Gradients of `leaky_relu` in x and, in the shape of x, in the slope."""
    return kernels.leaky_relu_backward(g, x, weight), kernels.where(
        kernels.greater(x, 0), g.dtype.type(0), kernels.multiply(x, g))


@kernel
def glu(x, axis):
    """The first half along `axis` times the sigmoid of the second."""
    a, b = np.split(x, 2, axis)
    return kernels.multiply(a, kernels.sigmoid(b))


@kernel
def glu_backward(g, x, axis):
    """g * s and g * a * s * (1 - s), with s = sigmoid(b), side by side."""
    a, b = np.split(x, 2, axis)
    s = kernels.sigmoid(b)
    by_b = kernels.sigmoid_backward(kernels.multiply(g, a), s)
    return np.concatenate([kernels.multiply(g, s), by_b], axis)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))
