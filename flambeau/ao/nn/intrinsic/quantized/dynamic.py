"""Modules in a row as one module that quantises what comes in."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau._support.lazy.modules import parts
from flambeau.ao.nn import intrinsic
from flambeau.ao.nn.quantized import dynamic
from flambeau.ops.quantized import library as ops

__all__ = ["LinearReLU"]


class LinearReLU(dynamic.Linear):
    """`dynamic.Linear` with the positive part taken."""

    _FLOAT_MODULE = intrinsic.LinearReLU
    _product = staticmethod(ops.linear_relu_dynamic)
    _half_product = staticmethod(ops.linear_relu_dynamic_fp16)

    def __init__(self, in_features: int, out_features: int, bias: bool = True,
                 dtype: Any = flambeau.qint8):
        super().__init__(in_features, out_features, bias, dtype)

    @classmethod
    def from_reference(cls, ref_qlinear_relu: Any) -> Any:
        """The quantised form of a row of a module from `quantized.reference` and a `ReLU`."""
        return cls._from_row_or_module(ref_qlinear_relu)

parts(__name__, {
    "modules": "*",
    "modules.linear_relu": "LinearReLU"})
