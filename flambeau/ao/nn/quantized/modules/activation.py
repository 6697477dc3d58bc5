"""Activation functions of quantised tensors."""
from __future__ import annotations

import warnings
from typing import Any

import flambeau
from flambeau import Tensor, nn
from flambeau._support.own_methods import define_in_subclasses
from flambeau.ao.nn.quantized.modules.utils import _Described
from flambeau.ops.quantized import library as ops


@define_in_subclasses("from_float", "from_reference")
class _Observed:
    """Made from a float module whose results were watched; `_options` are what else it takes."""

    _options: tuple[str, ...] = ()

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The quantised form of a float module that was observed."""
        scale, zero = mod.activation_post_process.calculate_qparams()
        return cls._with_scale(mod, float(scale), int(zero))

    @classmethod
    def from_reference(cls, mod: Any, scale: float, zero_point: int) -> Any:
        """The quantised form of a float module, with the scale given."""
        return cls._with_scale(mod, scale, zero_point)

    @classmethod
    def _with_scale(cls, mod: Any, scale: float, zero_point: int) -> Any:
        made: Any = cls
        return made(scale, zero_point, *(getattr(mod, name) for name in cls._options))


class _Buffered(_Described):
    """Scale and zero point are buffers."""

    def _keep(self, scale: Any, zero_point: Any) -> None:
        self.register_buffer("scale", flambeau.tensor(float(scale)))
        self.register_buffer("zero_point", flambeau.tensor(int(zero_point)))


class ReLU6(_Described, nn.ReLU):
    """min(max(x, 0), 6) of a quantised tensor."""

    def forward(self, input: Tensor) -> Tensor:
        return ops.relu6(input, self.inplace)

    @staticmethod
    def from_float(mod: Any, use_precomputed_fake_quant: bool = False) -> ReLU6:
        """The quantised form of a float module."""
        return ReLU6(mod.inplace)


class Hardswish(_Observed, _Buffered, nn.Hardswish):
    """x · min(max(x + 3, 0), 6) / 6 of a quantised tensor."""

    def __init__(self, scale: float, zero_point: int, device: Any = None, dtype: Any = None):
        super().__init__()
        self._keep(scale, zero_point)

    def forward(self, input: Tensor) -> Tensor:
        return ops.hardswish(input, self.scale, self.zero_point)


class ELU(_Observed, _Described, nn.ELU):
    """x, where negative α (exp(x) - 1), of a quantised tensor."""

    _options = ("alpha",)

    def __init__(self, scale: float, zero_point: int, alpha: float = 1.0):
        super().__init__(alpha)
        self.scale, self.zero_point = scale, zero_point

    def forward(self, input: Tensor) -> Tensor:
        return ops.elu(input, self.scale, self.zero_point, self.alpha)


class LeakyReLU(_Observed, _Buffered, nn.LeakyReLU):
    """x, where negative `negative_slope` · x, of a quantised tensor."""

    _options = ("negative_slope", "inplace")

    def __init__(self, scale: float, zero_point: int, negative_slope: float = 1e-2,
                 inplace: bool = False, device: Any = None, dtype: Any = None):
        super().__init__(negative_slope, inplace)
        self._keep(scale, zero_point)

    def forward(self, input: Tensor) -> Tensor:
        return ops.leaky_relu(input, self.negative_slope, self.inplace, self.scale,
                              self.zero_point)


class Sigmoid(_Observed, nn.Sigmoid):
    """1 / (1 + exp(-x)) of a quantised tensor."""

    def __init__(self, output_scale: float, output_zero_point: int):
        super().__init__()
        self.output_scale, self.output_zero_point = output_scale, output_zero_point

    def forward(self, input: Tensor) -> Tensor:
        return ops.sigmoid(input, self.output_scale, self.output_zero_point)


class Softmax(_Observed, _Described, nn.Softmax):
    """exp(x) / Σ exp(x) along a dimension of a quantised tensor."""

    def __init__(self, dim: int | None = None, scale: float = 1.0, zero_point: int = 0):
        super().__init__()
        self.dim, self.scale, self.zero_point = dim, scale, zero_point

    @classmethod
    def _with_scale(cls, mod: Any, scale: float, zero_point: int) -> Softmax:
        return cls(mod.dim, scale, zero_point)

    def forward(self, input: Tensor) -> Tensor:
        dim = self.dim
        if dim is None:
            dim = 0 if input.dim() in (0, 1, 3) else 1
        return ops.softmax(input, dim, self.scale, self.zero_point)


class PReLU(_Observed, _Described):
    """x, where negative weight · x, of a quantised tensor; the weight is quantised too."""

    weight: Tensor

    def __init__(self, output_scale: float, output_zero_point: int, num_parameters: int = 1):
        super().__init__()
        self.num_parameters = num_parameters
        self.scale, self.zero_point = output_scale, output_zero_point
        self.set_weight(flambeau.quantize_per_tensor(
            flambeau.randn(num_parameters), 1.0, 0, flambeau.quint8))

    def set_weight(self, w: Tensor) -> None:
        """Take a quantised weight."""
        self.weight = w

    def forward(self, input: Tensor) -> Tensor:
        return ops.prelu(input, self.weight, self.scale, self.zero_point)

    @classmethod
    def _with_scale(cls, mod: Any, scale: float, zero_point: int) -> PReLU:
        result = cls(scale, zero_point, mod.num_parameters)
        observer = mod.qconfig.weight()
        observer(mod.weight)
        if observer.dtype is not flambeau.quint8:
            warnings.warn("PReLU's weight observer should have dtype quint8 but got "
                          f"{observer.dtype}", stacklevel=3)
        result.set_weight(flambeau.quantize_per_tensor(
            mod.weight.detach().float(), *_numbers(observer), flambeau.quint8))
        return result


def _numbers(observer: Any) -> tuple[float, int]:
    scale, zero = observer.calculate_qparams()
    return float(scale), int(zero)


__all__ = ["ELU", "Hardswish", "LeakyReLU", "PReLU", "ReLU6", "Sigmoid", "Softmax"]
