"""Putting the weights of convolutions into another memory format."""

from __future__ import annotations

import flambeau

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def _convert(module, memory_format, layers):
    if isinstance(module, layers):
        module.weight.data = module.weight.detach().clone(memory_format=memory_format)
    for child in module.children():
        _convert(child, memory_format, layers)
    return module


def convert_conv2d_weight_memory_format(module, memory_format):
    """Convert the weights of all two-dimensional convolutions; returns the module.

    Example:
        >>> net = nn.utils.convert_conv2d_weight_memory_format(
        ...     nn.Conv2d(3, 4, 3), flambeau.channels_last
        ... )
        >>> net.weight.is_contiguous(memory_format=flambeau.channels_last)
        True
    """
    nn = flambeau.nn
    return _convert(module, memory_format, (nn.Conv2d, nn.ConvTranspose2d))


def convert_conv3d_weight_memory_format(module, memory_format):
    """Convert the weights of all three-dimensional convolutions; returns the module."""
    nn = flambeau.nn
    return _convert(module, memory_format, (nn.Conv3d, nn.ConvTranspose3d))
