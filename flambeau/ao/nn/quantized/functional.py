"""Functions of quantised tensors."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau import Tensor, nn
from flambeau._support.signatures import extended, signed
from flambeau.nn.modules.utils import _ntuple
from flambeau.ops.quantized import library as ops

__all__ = ["adaptive_avg_pool2d", "adaptive_avg_pool3d", "avg_pool2d", "avg_pool3d", "celu",
           "clamp", "conv1d", "conv2d", "conv3d", "elu", "hardsigmoid", "hardswish", "hardtanh",
           "interpolate", "leaky_relu", "linear", "max_pool1d", "max_pool2d", "threshold",
           "upsample", "upsample_bilinear", "upsample_nearest"]
_F = nn.functional


def _expect_quantized(input: Tensor, name: str) -> None:
    if not input.is_quantized:
        raise ValueError(f"Input to 'quantized.{name}' must be quantized!")


def _alike(name: str, without: tuple[str, ...] = (), prefix: str = "", **defaults: Any) -> Any:
    """The float function of that name, less the parameters `without`, with these defaults."""
    float_function = getattr(_F, name)

    shown = extended(float_function, without=without, defaults=defaults)

    @signed(shown)
    def call(*args: Any, **kwargs: Any) -> Tensor:
        given = shown.bind(*args, **kwargs)
        given.apply_defaults()
        _expect_quantized(given.arguments["input"], prefix + name)
        return float_function(*given.args)
    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"`{name}` of a quantised tensor; the result is quantised as that is."
    return call


avg_pool2d, avg_pool3d = (
    _alike(f"avg_pool{n}d", ("out",), stride=None, padding=0) for n in (2, 3))
adaptive_avg_pool2d, adaptive_avg_pool3d = (
    _alike(f"adaptive_avg_pool{n}d", prefix="functional.") for n in (2, 3))
interpolate = _alike("interpolate", ("recompute_scale_factor", "antialias"))
hardtanh, hardsigmoid = _alike("hardtanh"), _alike("hardsigmoid")
upsample, upsample_bilinear = _alike("upsample"), _alike("upsample_bilinear")
upsample_nearest = _alike("upsample_nearest")


def max_pool1d(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
               dilation: Any = 1, ceil_mode: bool = False, return_indices: bool = False) -> Tensor:
    """`max_pool1d` of a quantised tensor."""
    return _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool2d(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
               dilation: Any = 1, ceil_mode: bool = False, return_indices: bool = False) -> Tensor:
    """`max_pool2d` of a quantised tensor."""
    return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def _max_pool(n: int, input: Tensor, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
              ceil_mode: bool, return_indices: bool) -> Tensor:
    if return_indices:
        raise NotImplementedError("return_indices is not yet implemented!")
    return getattr(_F, f"max_pool{n}d")(input, kernel_size, stride or None, padding, dilation,
                                        ceil_mode)


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, scale: float | None = None,
           zero_point: int | None = None) -> Tensor:
    """x Wᵀ + b, quantised with the scale and zero point, or as the input is."""
    return ops.linear(input, ops.linear_prepack(weight, bias),
                      input.q_scale() if scale is None else scale,
                      input.q_zero_point() if zero_point is None else zero_point)


_SHAPES = {1: "(N, C, L)", 2: "(N, C, H, W)", 3: "(N, C, D, H, W)"}


def _conv(n: int) -> Any:
    def conv(input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any = 1, padding: Any = 0,
             dilation: Any = 1, groups: int = 1, padding_mode: str = "zeros", scale: float = 1.0,
             zero_point: int = 0, dtype: Any = flambeau.quint8) -> Tensor:
        if padding_mode != "zeros":
            raise NotImplementedError("Only zero-padding is supported!")
        if input.dtype is not flambeau.quint8:
            raise NotImplementedError("Only torch.quint8 is supported for activation tensor!")
        if weight.dtype is not flambeau.qint8:
            raise NotImplementedError("Only torch.qint8 is supported for weight tensor!")
        if input.dim() != n + 2:
            raise ValueError(f"Input shape must be `{_SHAPES[n]}`!")
        sizes = [_ntuple(n)(v) for v in (stride, padding, dilation)]
        packed = getattr(ops, f"conv{n}d_prepack")(weight, bias, *sizes, groups)
        return getattr(ops, f"conv{n}d")(input, packed, scale, zero_point)
    conv.__name__ = conv.__qualname__ = f"conv{n}d"
    conv.__doc__ = f"`conv{n}d` of a quantised tensor, with the scale and zero point given."
    return conv


conv1d, conv2d, conv3d = _conv(1), _conv(2), _conv(3)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False,
               scale: float | None = None, zero_point: int | None = None) -> Tensor:
    """`leaky_relu`, quantised with the scale and zero point, or as the input is."""
    if scale is not None and zero_point is not None:
        return ops.leaky_relu(input, negative_slope, inplace, scale, zero_point)
    return _F.leaky_relu(input, negative_slope, inplace)


def threshold(input: Tensor, threshold: float, value: float) -> Tensor:
    """x, or `value` where x is not above `threshold`."""
    _expect_quantized(input, "threshold")
    for given, name in ((threshold, "threshold"), (value, "value")):
        if given is None:
            raise ValueError(f"Input to '{name}' must be specified!")
    return ops.threshold(input, threshold, value)


def elu(input: Tensor, scale: float, zero_point: int, alpha: float = 1.0) -> Tensor:
    """`elu` with a scale and zero point for the result."""
    _expect_quantized(input, "elu")
    return ops.elu(input, scale, zero_point, alpha)


def celu(input: Tensor, scale: float, zero_point: int, alpha: float = 1.0) -> Tensor:
    """`celu` with a scale and zero point for the result."""
    _expect_quantized(input, "celu")
    return ops.celu(input, scale, zero_point, alpha)


def hardswish(input: Tensor, scale: float, zero_point: int) -> Tensor:
    """`hardswish` with a scale and zero point for the result."""
    _expect_quantized(input, "hardswish")
    return ops.hardswish(input, scale, zero_point)


def clamp(input: Tensor, min_: float, max_: float) -> Tensor:
    """x between two numbers."""
    _expect_quantized(input, "clamp")
    return ops.clamp(input, min_, max_)
