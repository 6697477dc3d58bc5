"""Modules in a row as one quantised module."""
from flambeau._support.lazy.modules import lazy_modules, parts
from flambeau.ao.nn.quantized.modules.batchnorm import BNReLU2d, BNReLU3d
from flambeau.ao.nn.quantized.modules.conv import (
    ConvAdd2d,
    ConvAddReLU2d,
    ConvReLU1d,
    ConvReLU2d,
    ConvReLU3d,
)
from flambeau.ao.nn.quantized.modules.linear import LinearLeakyReLU, LinearReLU, LinearTanh

__all__ = ["BNReLU2d", "BNReLU3d", "ConvAdd2d", "ConvAddReLU2d", "ConvReLU1d", "ConvReLU2d",
           "ConvReLU3d", "LinearLeakyReLU", "LinearReLU", "LinearTanh"]
__getattr__ = lazy_modules(__name__, "dynamic")

parts(__name__, {
    "modules": "*",
    "modules.bn_relu": "BNReLU2d BNReLU3d",
    "modules.conv_add": "ConvAdd2d ConvAddReLU2d",
    "modules.conv_relu": "ConvReLU1d ConvReLU2d ConvReLU3d",
    "modules.linear_relu": "LinearReLU LinearLeakyReLU LinearTanh"})
