"""Modules that stand for several, which quantisation treats as one."""
from flambeau._lazy import lazy_modules
from flambeau.ao.nn.intrinsic.modules import (
    BNReLU2d,
    BNReLU3d,
    ConvAdd2d,
    ConvAddReLU2d,
    ConvBn1d,
    ConvBn2d,
    ConvBn3d,
    ConvBnReLU1d,
    ConvBnReLU2d,
    ConvBnReLU3d,
    ConvReLU1d,
    ConvReLU2d,
    ConvReLU3d,
    LinearBn1d,
    LinearLeakyReLU,
    LinearReLU,
    LinearTanh,
    _FusedModule,
)

__all__ = ["BNReLU2d", "BNReLU3d", "ConvAdd2d", "ConvAddReLU2d", "ConvBn1d", "ConvBn2d", "ConvBn3d",
           "ConvBnReLU1d", "ConvBnReLU2d", "ConvBnReLU3d", "ConvReLU1d", "ConvReLU2d", "ConvReLU3d",
           "LinearBn1d", "LinearLeakyReLU", "LinearReLU", "LinearTanh"]
_known = (_FusedModule,)
__getattr__ = lazy_modules(__name__, "qat", "quantized")
