"""Activations that are not element by element, with their gradients."""
import numpy as np

from flambeau import kernels
from flambeau.kernels._extension import Misfit
from flambeau.kernels.declaration import kernel


def prelu_backward(g, x, weight):
    """Gradients of `leaky_relu` in x and, in the shape of x, in the slope."""
    return kernels.leaky_relu_backward(g, x, weight), kernels.where(
        kernels.greater(x, 0), g.dtype.type(0), kernels.multiply(x, g))


@kernel
def glu(x, axis):
    """The first half along `axis` times the sigmoid of the second."""
    if not x.ndim or x.shape[axis] % 2:
        raise Misfit
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
