"""Gradients of convolutions, given the gradient of their output.

A convolution is linear in its input and in its weight, so both gradients follow from its
derivative, wherever it is taken.
"""

from __future__ import annotations

import flambeau
from flambeau import Tensor
from flambeau.nn import functional as F


def _input_gradient(name, conv):
    def conv_input(input_size, weight: Tensor, grad_output: Tensor, stride=1, padding=0, dilation=1,
                   groups=1) -> Tensor:
        input = grad_output.new_zeros(tuple(input_size))
        return _vjp(lambda x: conv(x, weight, None, stride, padding, dilation, groups), input,
                    grad_output, weight)

    conv_input.__name__ = conv_input.__qualname__ = name
    conv_input.__doc__ = f"The gradient of `{conv.__name__}` with respect to its input."
    return conv_input


def _weight_gradient(name, conv):
    def conv_weight(input: Tensor, weight_size, grad_output: Tensor, stride=1, padding=0,
                    dilation=1, groups=1) -> Tensor:
        weight = grad_output.new_zeros(tuple(weight_size))
        return _vjp(lambda w: conv(input, w, None, stride, padding, dilation, groups), weight,
                    grad_output, input)

    conv_weight.__name__ = conv_weight.__qualname__ = name
    conv_weight.__doc__ = f"The gradient of `{conv.__name__}` with respect to its weight."
    return conv_weight


def _vjp(function, at, grad_output, other):
    create_graph = flambeau.is_grad_enabled() and (
        grad_output.requires_grad or other.requires_grad)
    with flambeau.enable_grad():
        at.requires_grad_()
        (grad,) = flambeau.autograd.grad(function(at), at, grad_output, create_graph=create_graph)
    return grad


conv1d_input = _input_gradient("conv1d_input", F.conv1d)
conv2d_input = _input_gradient("conv2d_input", F.conv2d)
conv3d_input = _input_gradient("conv3d_input", F.conv3d)
conv1d_weight = _weight_gradient("conv1d_weight", F.conv1d)
conv2d_weight = _weight_gradient("conv2d_weight", F.conv2d)
conv3d_weight = _weight_gradient("conv3d_weight", F.conv3d)
