"""Modules in a row as one module that quantises what comes in."""
from __future__ import annotations

from flambeau._support.lazy_modules import parts
from flambeau.ao.nn import intrinsic
from flambeau.ao.nn.quantized import dynamic
from flambeau.ops.quantized import library as ops

__all__ = ["LinearReLU"]


class LinearReLU(dynamic.Linear):
    """`dynamic.Linear` with the positive part taken."""

    _FLOAT_MODULE = intrinsic.LinearReLU
    _product = staticmethod(ops.linear_relu_dynamic)
    _half_product = staticmethod(ops.linear_relu_dynamic_fp16)

parts(__name__, "modules modules.linear_relu")
