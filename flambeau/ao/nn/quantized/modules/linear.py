"""`Linear` with a quantised weight."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau import Tensor, nn
from flambeau._support.own_methods import define_in_subclasses
from flambeau.ao.nn import intrinsic
from flambeau.ao.nn.quantized.modules.utils import WeightedQuantizedModule, _empty_weight
from flambeau.nn.modules.linear import NonDynamicallyQuantizableLinear
from flambeau.ops.quantized import library as ops


class LinearPackedParams(nn.Module):
    """Weight and bias as the quantised product takes them."""

    _version = 3

    def __init__(self, dtype: Any = flambeau.qint8):
        super().__init__()
        self.dtype = dtype
        self.set_weight_bias(flambeau.zeros(1, 1) if dtype is flambeau.float16
                             else _empty_weight(1, 1), None)

    def set_weight_bias(self, weight: Tensor, bias: Tensor | None) -> None:
        """Take a weight, quantised or for float16, and a bias."""
        if self.dtype not in (flambeau.qint8, flambeau.float16):
            raise RuntimeError("Unsupported dtype on dynamic quantized linear!")
        prepack = ops.linear_prepack if self.dtype is flambeau.qint8 else ops.linear_prepack_fp16
        self._packed_params = prepack(weight, bias)

    def _weight_bias(self) -> tuple[Tensor, Tensor | None]:
        return self._packed_params.unpack()

    def forward(self, x: Tensor) -> Tensor:
        return x

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "dtype"] = self.dtype
        destination[prefix + "_packed_params"] = self._weight_bias()

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        self.dtype = state_dict.pop(prefix + "dtype", self.dtype)
        self.set_weight_bias(*state_dict.pop(prefix + "_packed_params"))
        super()._load_from_state_dict(state_dict, prefix, *args)

    def __repr__(self) -> str:
        return repr(self._weight_bias())


class Linear(WeightedQuantizedModule):
    """x Wᵀ + b of a quantised tensor, quantised with `scale` and `zero_point`.

    >>> from flambeau.ao.nn import quantized
    >>> layer = quantized.Linear(2, 3)
    >>> x = flambeau.quantize_per_tensor(flambeau.ones(1, 2), 0.1, 0, flambeau.quint8)
    >>> layer(x).shape, layer
    (torch.Size([1, 3]), QuantizedLinear(in_features=2, out_features=3, scale=1.0, zero_point=0, \
qscheme=torch.per_tensor_affine))
    """

    _version = 3
    _FLOAT_MODULE: Any = (nn.Linear, NonDynamicallyQuantizableLinear)
    _product: Any = staticmethod(ops.linear)

    def __init__(self, in_features: int, out_features: int, bias_: bool = True,
                 dtype: Any = flambeau.qint8):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        half = dtype is flambeau.float16
        if not half and dtype is not flambeau.qint8:
            raise RuntimeError("Unsupported dtype specified for quantized Linear!")
        self.scale, self.zero_point = 1.0, 0
        self._packed_params = LinearPackedParams(dtype)
        sizes = (out_features, in_features)
        self._packed_params.set_weight_bias(
            flambeau.zeros(sizes) if half else _empty_weight(*sizes),
            flambeau.zeros(out_features) if bias_ else None)

    @classmethod
    def _like(cls, mod: Any) -> Any:
        return cls(mod.in_features, mod.out_features)

    @classmethod
    def from_reference(cls, ref_qlinear: Any, output_scale: float, output_zero_point: int) -> Any:
        """The quantised form of a module from `quantized.reference`."""
        return cls._from_reference(ref_qlinear, output_scale, output_zero_point)

    def forward(self, x: Tensor) -> Tensor:
        return self._product(x, self._packed_params._packed_params, self.scale, self.zero_point)

    def _weight_bias(self) -> tuple[Tensor, Tensor | None]:
        return self._packed_params._weight_bias()

    def weight(self) -> Tensor:
        """The quantised weight."""
        return self._weight_bias()[0]

    def bias(self) -> Tensor | None:
        """The bias."""
        return self._weight_bias()[1]

    def set_weight_bias(self, w: Tensor, b: Tensor | None) -> None:
        """Take a quantised weight and a bias."""
        self._packed_params.set_weight_bias(w, b)

    def extra_repr(self) -> str:
        return (f"in_features={self.in_features}, out_features={self.out_features}, "
                f"scale={self.scale}, zero_point={self.zero_point}, "
                f"qscheme={self.weight().qscheme()}")

    def __repr__(self) -> str:
        return f"{self._get_name()}({self.extra_repr()})"


@define_in_subclasses("__init__")
class _LinearAnd(Linear):
    """`Linear` and a function of what it gives."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True,
                 dtype: Any = flambeau.qint8):
        super().__init__(in_features, out_features, bias, dtype)


class LinearReLU(_LinearAnd):
    """`Linear` with the positive part taken."""

    _FLOAT_MODULE = intrinsic.LinearReLU
    _product = staticmethod(ops.linear_relu)

    @classmethod
    def from_reference(cls, ref_linear_relu: Any, output_scale: float,
                       output_zero_point: int) -> Any:
        """The quantised form of a row of a module from `quantized.reference` and a `ReLU`."""
        return cls._from_reference(ref_linear_relu, output_scale, output_zero_point)


class LinearTanh(_LinearAnd):
    """`Linear` with a tanh behind."""

    _FLOAT_MODULE = intrinsic.LinearTanh
    _product = staticmethod(ops.linear_tanh)

    @classmethod
    def from_reference(cls, ref_mod: Any, output_scale: float, output_zero_point: int) -> Any:
        """The quantised form of a row of a module from `quantized.reference` and a `Tanh`."""
        return cls._from_reference(ref_mod, output_scale, output_zero_point)


class LinearLeakyReLU(Linear):
    """`Linear` with a leaky ReLU behind."""

    _FLOAT_MODULE = intrinsic.LinearLeakyReLU

    @classmethod
    def from_reference(cls, ref_mod: Any, output_scale: float, output_zero_point: int) -> Any:
        """The quantised form of a row of a module from `quantized.reference` and a `LeakyReLU`."""
        return cls._from_reference(ref_mod, output_scale, output_zero_point)

    def __init__(self, in_features: int, out_features: int, negative_slope: float,
                 bias: bool = True, dtype: Any = flambeau.qint8):
        super().__init__(in_features, out_features, bias, dtype)
        self.negative_slope = negative_slope

    def forward(self, x: Tensor) -> Tensor:
        return ops.linear_leaky_relu(x, self._packed_params._packed_params, self.scale,
                                     self.zero_point, self.negative_slope)

    @classmethod
    def _first(cls, row: Any) -> Any:
        row[0].negative_slope = row[1].negative_slope
        return row[0]

    @classmethod
    def _like(cls, mod: Any) -> Any:
        return cls(mod.in_features, mod.out_features, mod.negative_slope)


__all__ = ["Linear", "LinearPackedParams"]
