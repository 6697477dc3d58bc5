r"""A linear map followed by batch norm, as one linear map.

With running mean μ and variance v, batch norm is :math:`y = s (x - \mu) + \beta`,
:math:`s = \gamma / \sqrt{v + \epsilon}`; so W becomes sW and b becomes :math:`s(b - \mu) + \beta`.
"""

from __future__ import annotations

import copy

import flambeau
from flambeau.nn.parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval",
           "fuse_linear_bn_weights"]


def _fused(weight, bias, mean, var, eps, gamma, beta, channel_dim):
    bias = flambeau.zeros_like(mean) if bias is None else bias
    gamma = flambeau.ones_like(mean) if gamma is None else gamma
    beta = flambeau.zeros_like(mean) if beta is None else beta
    scale = gamma * flambeau.rsqrt(var + eps)
    shape = [1] * weight.dim()
    shape[channel_dim] = -1
    new_weight = (weight * scale.reshape(shape)).to(weight.dtype)
    new_bias = ((bias - mean) * scale + beta).to(bias.dtype)
    return (Parameter(new_weight, weight.requires_grad), Parameter(new_bias, bias.requires_grad))


def _check_evaluated(layer, bn):
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")


def _fuse_eval(layer, bn, fuse_weights, **options):
    _check_evaluated(layer, bn)
    fused = copy.deepcopy(layer)
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")
    fused.weight, fused.bias = fuse_weights(fused.weight, fused.bias, bn.running_mean,
                                            bn.running_var, bn.eps, bn.weight, bn.bias, **options)
    return fused


def fuse_conv_bn_eval(conv, bn, transpose: bool = False):
    """A convolution that does what `conv` and then `bn` do, both in evaluation mode.

    Example:
        >>> net = nn.utils.fuse_conv_bn_eval(nn.Conv2d(1, 2, 3).eval(), nn.BatchNorm2d(2).eval())
        >>> net
        Conv2d(1, 2, kernel_size=(3, 3), stride=(1, 1))
    """
    return _fuse_eval(conv, bn, fuse_conv_bn_weights, transpose=transpose)


def fuse_conv_bn_weights(conv_w, conv_b, bn_rm, bn_rv, bn_eps: float, bn_w, bn_b,
                         transpose: bool = False):
    """Weight and bias of the fused convolution; `transpose` for a transposed one."""
    return _fused(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 1 if transpose else 0)


def fuse_linear_bn_eval(linear, bn):
    """A linear layer that does what `linear` and then `bn` do, both in evaluation mode."""
    _check_evaluated(linear, bn)
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, "
            f"got linear.out_features={linear.out_features} and bn.num_features={bn.num_features}")
    return _fuse_eval(linear, bn, fuse_linear_bn_weights)


def fuse_linear_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps: float, bn_w, bn_b):
    """Weight and bias of the fused linear layer."""
    return _fused(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 0)
