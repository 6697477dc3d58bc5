"""Batch normalisation of quantised tensors, with the statistics of training."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau import Tensor, nn
from flambeau._support.own_methods import define_in_subclasses
from flambeau.ao.nn import intrinsic
from flambeau.ao.nn.quantized.modules.activation import _Buffered
from flambeau.ops.quantized import library as ops


@define_in_subclasses("__init__", "forward", "from_float", further=True)
class _BatchNorm(_Buffered, nn.modules.batchnorm._BatchNorm):
    _op: str

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1,
                 device: Any = None, dtype: Any = None):
        super().__init__(num_features, eps, momentum, True, True, device=device, dtype=dtype)
        self._keep(1.0, 0)

    def forward(self, input: Tensor) -> Tensor:
        return getattr(ops, self._op)(input, self.weight, self.bias, self.running_mean,
                                      self.running_var, self.eps, self.scale, self.zero_point)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The quantised form of a float module that was observed."""
        activation = mod.activation_post_process
        mod = mod[0] if isinstance(mod, nn.Sequential) else mod
        return cls.from_reference(mod, *activation.calculate_qparams())

    @classmethod
    def from_reference(cls, bn: Any, output_scale: Any, output_zero_point: Any) -> Any:
        """The quantised form of a float module, with the scale given."""
        return cls._from_reference(bn, output_scale, output_zero_point)

    @classmethod
    def _from_reference(cls, bn: Any, output_scale: Any, output_zero_point: Any) -> Any:
        bn = bn[0] if isinstance(bn, nn.Sequential) else bn
        result = cls(bn.num_features, bn.eps)
        for name in ("weight", "bias", "running_mean", "running_var"):
            setattr(result, name, getattr(bn, name))
        result.scale = flambeau.as_tensor(output_scale)
        result.zero_point = flambeau.as_tensor(output_zero_point)
        return result


class BatchNorm2d(_BatchNorm):
    """`BatchNorm2d` of a quantised tensor."""

    _FLOAT_MODULE: Any = nn.BatchNorm2d
    _op = "batch_norm2d"


class BatchNorm3d(_BatchNorm):
    """`BatchNorm3d` of a quantised tensor."""

    _FLOAT_MODULE: Any = nn.BatchNorm3d
    _op = "batch_norm3d"


class _WithReLU:
    @classmethod
    def from_reference(cls, bn_relu: Any, output_scale: Any, output_zero_point: Any) -> Any:
        """The quantised form of a float module and a `ReLU` in a row, with the scale given."""
        made: Any = cls
        return made._from_reference(bn_relu, output_scale, output_zero_point)


class BNReLU2d(_WithReLU, BatchNorm2d):
    """`BatchNorm2d` with the positive part taken."""

    _FLOAT_MODULE = intrinsic.BNReLU2d
    _op = "batch_norm2d_relu"


class BNReLU3d(_WithReLU, BatchNorm3d):
    """`BatchNorm3d` with the positive part taken."""

    _FLOAT_MODULE = intrinsic.BNReLU3d
    _op = "batch_norm3d_relu"


__all__ = ["BatchNorm2d", "BatchNorm3d"]
