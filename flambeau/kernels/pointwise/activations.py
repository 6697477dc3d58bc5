"""Activation functions, and what their gradients are made of."""
import math

import numpy as np

from flambeau.kernels.declaration import pointwise, special


@pointwise("fc")
def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@pointwise("if")
def relu(x):
    return np.where(x < 0, x.dtype.type(0), x)


@pointwise("f")
def gelu(x):
    """x Φ(x), by the complementary error function, so that the left tail keeps its digits"""
    return x * (0.5 * special("erfc")(-x * math.sqrt(0.5)))


@pointwise("f")
def gelu_tanh(x):
    """½ x (1 + tanh(u)), u = √(2/π) (x + 0.044715 x³), where ½ (1 + tanh(u)) is sigmoid(2 u)"""
    u = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
    return x / (1 + np.exp(-2 * u))


@pointwise("fc")
def silu(x):
    return x / (1 + np.exp(-x))


@pointwise("f")
def softplus(x, beta=1.0, threshold=20.0):
    """log(1 + exp(beta x)) / beta, and x where beta x exceeds the threshold"""
    scaled = beta * x
    return np.where(scaled > threshold, x, np.log1p(np.exp(scaled)) / beta)


@pointwise("f")
def mish(x):
    """x tanh(log(1 + exp(x)))"""
    return x * np.tanh(_log_of_exp(x))


@pointwise("f")
def logsigmoid(x):
    """log(1 / (1 + exp(-x)))"""
    return np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x)))


def _log_of_exp(x):
    """log(1 + exp(x)), never infinite where x is not: from 80 on that is x in every type"""
    return np.where(x > 80, x, np.log1p(np.exp(np.minimum(x, x.dtype.type(80)))))


@pointwise("f")
def leaky_relu(x, slope=0.01):
    return np.where(x > 0, x, x * slope)


@pointwise("f")
def elu(x, alpha=1.0, scale=1.0, input_scale=1.0):
    """scale (x if x > 0 else alpha (exp(input_scale x) - 1))"""
    return np.where(x > 0, x * scale, np.expm1(x * input_scale) * (alpha * scale))


@pointwise("if")
def hardtanh(x, lo=-1.0, hi=1.0):
    return np.minimum(np.maximum(x, lo), hi)


@pointwise("if")
def threshold(x, limit, value):
    """x where it exceeds the limit, else the value"""
    return np.where(x <= limit, value, x)


@pointwise("f")
def hardsigmoid(x):
    """min(max(x + 3, 0), 6) / 6"""
    return np.minimum(np.maximum(x + 3, 0), 6) / 6


@pointwise("f")
def hardswish(x):
    """x hardsigmoid(x)"""
    return x * np.minimum(np.maximum(x + 3, 0), 6) / 6


@pointwise("f")
def hardshrink(x, limit):
    """x, but 0 from -limit to limit"""
    return np.where((x >= -limit) & (x <= limit), x.dtype.type(0), x)


@pointwise("f")
def softshrink(x, limit):
    """x moved towards 0 by limit, but not past it"""
    return np.where(x > limit, x - limit, np.where(x < -limit, x + limit, x * 0))


# ---- derivatives: grad times the derivative, in one pass -----------------------------------------

@pointwise("f", leader="result")
def relu_backward(grad, result):
    return np.where(result <= 0, grad.dtype.type(0), grad)


@pointwise("f", leader="x")
def threshold_backward(grad, x, limit):
    return np.where(x <= limit, grad.dtype.type(0), grad)


@pointwise("fc")
def sigmoid_backward(grad, result):
    return grad * np.conj(result * (1 - result))


@pointwise("fc")
def tanh_backward(grad, result):
    return grad * np.conj(1 - result * result)


@pointwise("f")
def gelu_backward(grad, x):
    """grad (Φ(x) + x φ(x))"""
    phi = 0.5 * special("erfc")(-x * math.sqrt(0.5))
    return (grad * (phi + x * np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi))).astype(x.dtype)


@pointwise("f")
def gelu_tanh_backward(grad, x):
    k = math.sqrt(2 / math.pi)
    s = 1 / (1 + np.exp(-2 * k * (x + 0.044715 * x * x * x)))
    slope = k * (1 + 3 * 0.044715 * x * x)
    return grad * (s + 2 * x * (s * (1 - s)) * slope)


@pointwise("fc")
def silu_backward(grad, x):
    s = 1 / (1 + np.exp(-x))
    return grad * np.conj(s * (1 + x * (1 - s)))


@pointwise("f")
def hardsigmoid_backward(grad, x):
    """The slope is 1/6 between -3 and 3"""
    return np.where((x > -3) & (x < 3), grad / 6, grad.dtype.type(0))


@pointwise("f")
def hardswish_backward(grad, x):
    """The slope is 0 up to -3, (2 x + 3) / 6 up to 3, and 1 from there"""
    middle = grad * (x / 3 + x.dtype.type(0.5))
    return np.where(x <= -3, grad.dtype.type(0), np.where(x < 3, middle, grad))


@pointwise("f")
def shrink_backward(grad, x, limit):
    """The gradient outside of -limit to limit: of hardshrink and softshrink alike"""
    return np.where((x >= -limit) & (x <= limit), grad.dtype.type(0), grad)


@pointwise("f")
def softplus_backward(grad, x, beta=1.0, threshold=20.0):
    scaled = beta * x
    z = np.exp(-np.abs(scaled))
    slope = np.where(scaled >= 0, 1 / (1 + z), z / (1 + z))
    return np.where(scaled > threshold, grad, grad * slope)


@pointwise("f", leader="x")
def leaky_relu_backward(grad, x, slope=0.01):
    return np.where(x > 0, grad, grad * slope)


@pointwise("f")
def elu_backward(grad, x, alpha=1.0, scale=1.0, input_scale=1.0):
    steep = input_scale * (alpha * scale)
    return np.where(x <= 0, grad * steep * np.exp(x * input_scale), grad * scale)


@pointwise("f")
def elu_backward_of_result(grad, y, alpha, scale, input_scale):
    return np.where(y <= 0, grad * input_scale * (y + alpha * scale), grad * scale)


@pointwise("f")
def mish_backward(grad, x):
    """With t = tanh(log(1 + exp(x))): t + x sigmoid(x) (1 - t²)"""
    t = np.tanh(_log_of_exp(x))
    return grad * (t + x * (1 - t * t) / (1 + np.exp(-x)))


@pointwise("f")
def logsigmoid_backward(grad, x):
    """The slope is sigmoid(-x)"""
    return grad / (1 + np.exp(x))


@pointwise("f")
def hardtanh_backward(grad, x, lo=-1.0, hi=1.0):
    return np.where((x <= lo) | (x >= hi), grad.dtype.type(0), grad)
