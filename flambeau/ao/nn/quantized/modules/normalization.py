"""Normalisation of quantised tensors by their own statistics."""
from __future__ import annotations

from typing import Any

from flambeau import Tensor, nn
from flambeau._support.own_methods import define_in_subclasses
from flambeau.ao.nn.quantized.modules.activation import _Buffered, _Observed
from flambeau.ops.quantized import library as ops


class _Normalization(_Observed, _Buffered):
    """Weight, bias, scale and zero point are given; `_first` are the arguments before them."""

    _first: tuple[str, ...] = ()
    weight: Any
    bias: Any

    def _take(self, weight: Any, bias: Any, scale: float, zero_point: int) -> None:
        self.weight, self.bias = weight, bias
        self._keep(scale, zero_point)

    @classmethod
    def _with_scale(cls, mod: Any, scale: float, zero_point: int) -> Any:
        made: Any = cls
        return made(*(getattr(mod, name) for name in cls._first), mod.weight, mod.bias,
                    float(scale), int(zero_point), *(getattr(mod, n) for n in cls._options))


class LayerNorm(_Normalization, nn.LayerNorm):
    """`LayerNorm` of a quantised tensor."""

    _first, _options = ("normalized_shape",), ("eps", "elementwise_affine")

    def __init__(self, normalized_shape: Any, weight: Any, bias: Any, scale: float,
                 zero_point: int, eps: float = 1e-5, elementwise_affine: bool = True,
                 device: Any = None, dtype: Any = None):
        super().__init__(normalized_shape, eps, elementwise_affine, device=device, dtype=dtype)
        self._take(weight, bias, scale, zero_point)

    def forward(self, input: Tensor) -> Tensor:
        return ops.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps,
                              self.scale, self.zero_point)


class GroupNorm(_Normalization, nn.GroupNorm):
    """`GroupNorm` of a quantised tensor."""

    _first, _options = ("num_groups", "num_channels"), ("eps", "affine")

    def __init__(self, num_groups: int, num_channels: int, weight: Any, bias: Any, scale: float,
                 zero_point: int, eps: float = 1e-5, affine: bool = True, device: Any = None,
                 dtype: Any = None):
        super().__init__(num_groups, num_channels, eps, affine, device=device, dtype=dtype)
        self._take(weight, bias, scale, zero_point)

    def forward(self, input: Tensor) -> Tensor:
        return ops.group_norm(input, self.num_groups, self.weight, self.bias, self.eps, self.scale,
                              self.zero_point)


@define_in_subclasses()
class _InstanceNorm(_Normalization):
    _first, _options = ("num_features",), ("eps", "affine")
    eps: float

    def __init__(self, num_features: int, weight: Any, bias: Any, scale: float, zero_point: int,
                 eps: float = 1e-5, momentum: float = 0.1, affine: bool = False,
                 track_running_stats: bool = False, device: Any = None, dtype: Any = None):
        base: Any = super()
        base.__init__(num_features, eps, momentum, affine, track_running_stats, device=device,
                      dtype=dtype)
        self._take(weight, bias, scale, zero_point)

    def forward(self, input: Tensor) -> Tensor:
        return ops.instance_norm(input, self.weight, self.bias, self.eps, self.scale,
                                 self.zero_point)


class InstanceNorm1d(_InstanceNorm, nn.InstanceNorm1d):
    """`InstanceNorm1d` of a quantised tensor."""


class InstanceNorm2d(_InstanceNorm, nn.InstanceNorm2d):
    """`InstanceNorm2d` of a quantised tensor."""


class InstanceNorm3d(_InstanceNorm, nn.InstanceNorm3d):
    """`InstanceNorm3d` of a quantised tensor."""


__all__ = ["GroupNorm", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LayerNorm"]
