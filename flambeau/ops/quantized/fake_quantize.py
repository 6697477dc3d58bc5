"""Fake quantisation: numbers rounded to those that a quantised tensor could hold, with a gradient.

The derivative is that of the clamp: 1 where the integer was in range, else 0.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from flambeau.core import dtypes
from flambeau.core.promotion import type_name
from flambeau.core.tensor import Tensor, wrap
from flambeau.dispatch.declaration import op
from flambeau.ops.pointwise.arithmetic import mul
from flambeau.ops.quantized.tensors import affine_parameters


def _quantize_raw(x: np.ndarray, scale: np.ndarray, zero_point: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        raw = np.rint(x.astype(np.float32) * (np.float32(1) / scale) + zero_point)
    return np.where(np.isnan(raw), -np.float32(np.inf), raw)


def _rounded(self: np.ndarray, scale: np.ndarray, zero_point: np.ndarray, quant_min: int,
             quant_max: int) -> np.ndarray:
    steps = np.clip(_quantize_raw(self, scale, zero_point), quant_min, quant_max)
    return ((steps - zero_point) * scale).astype(self.dtype)


def _is_in_range(self: np.ndarray, scale: np.ndarray, zero_point: np.ndarray, quant_min: int,
                 quant_max: int) -> np.ndarray:
    raw = _quantize_raw(self, scale, zero_point)
    return np.asarray((raw >= quant_min) & (raw <= quant_max))


def _declare_part(name: str, kernel: Any, **declared: Any) -> Any:
    return op(f"{name}(Tensor self, Tensor scale, Tensor zero_point, int quant_min, int quant_max) "
              "-> Tensor", kernel=kernel, core="(),(),()->()", function=False, method=False,
              out=False, **declared)


_in_range = _declare_part("fake_quantize_in_range", _is_in_range)


def _declare(name: str, node: str) -> Any:
    return _declare_part(name, _rounded, node=f"FakeQuantizePer{node}Backward0",
                         d_self=lambda grad, self, scale, zero_point, quant_min, quant_max: mul(
                             grad, _in_range(self, scale, zero_point, quant_min, quant_max)))


_per_tensor = _declare("fake_quantize_tensor", "TensorAffineCachemask")
_per_tensor_qparams = _declare("fake_quantize_tensor_qparams", "TensorAffineCachemaskTensorQparams")
_per_channel = _declare("fake_quantize_channels", "ChannelAffineCachemask")


def _check(input: Tensor, quant_min: int, quant_max: int) -> None:
    if not input.is_floating_point():
        raise NotImplementedError('"fake_quantize_tensor_cachemask_kernel_type_handling" not '
                                  f"implemented for '{type_name(input.dtype)}'")
    if quant_min > quant_max:
        raise RuntimeError("`quant_min` should be less than or         equal to `quant_max`.")


@op(*[f"fake_quantize_per_tensor_affine{name}(Tensor self, {kinds}, int quant_min, int quant_max) "
      "-> Tensor" for name, kinds in (("", "float scale, int zero_point"),
                                      (".tensor_qparams", "Tensor scale, Tensor zero_point"))],
    out=False, method=False)
def fake_quantize_per_tensor_affine(self: Tensor, scale: Any, zero_point: Any, quant_min: int,
                                    quant_max: int) -> Tensor:
    """(clamp(round(x / scale + zero_point), quant_min, quant_max) - zero_point) · scale.

    The gradient passes where nothing was clamped. `scale` and `zero_point` are numbers, or tensors
    of one element.

    >>> import flambeau
    >>> x = flambeau.tensor([0.26, 9.0], requires_grad=True)
    >>> y = flambeau.fake_quantize_per_tensor_affine(x, 0.1, 0, 0, 15)
    >>> y.detach()
    tensor([0.3000, 1.5000])
    >>> y.sum().backward()
    >>> x.grad
    tensor([1., 0.])
    """
    _check(self, quant_min, quant_max)
    if isinstance(scale, Tensor):
        return _per_tensor_qparams(self, scale.detach().float().reshape(()),
                                   zero_point.detach().int().float().reshape(()), quant_min,
                                   quant_max)
    if not quant_min <= zero_point <= quant_max:
        raise RuntimeError("`zero_point` must be between `quant_min` and `quant_max`.")
    return _per_tensor(self, wrap(np.float32(scale)), wrap(np.float32(zero_point)), quant_min,
                       quant_max)


@op("fake_quantize_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, "
    "int quant_min, int quant_max) -> Tensor", out=False, method=False)
def fake_quantize_per_channel_affine(input: Tensor, scale: Tensor, zero_point: Tensor, axis: int,
                                     quant_min: int, quant_max: int) -> Tensor:
    """`fake_quantize_per_tensor_affine` with a scale and a zero point for each index of `axis`.

    >>> import flambeau
    >>> x = flambeau.tensor([[0.26, 0.26], [9.0, 9.0]])
    >>> scale, zero = flambeau.tensor([0.1, 1.0]), flambeau.zeros(2, dtype=flambeau.int32)
    >>> flambeau.fake_quantize_per_channel_affine(x, scale, zero, 1, 0, 15)
    tensor([[0.3000, 0.0000],
            [1.5000, 9.0000]])
    """
    _check(input, quant_min, quant_max)
    ndim = input.ndim
    for name, given in (("scale", scale), ("zero-point", zero_point)):
        if given.ndim != 1:
            raise RuntimeError(f"{name.replace('-', ' ')} should be a 1-D tensor")
    if scale.numel() != zero_point.numel():
        raise RuntimeError("scale and zero-point need to have the same dimensions")
    if zero_point.dtype not in (dtypes.int32, dtypes.float32, dtypes.float16):
        raise RuntimeError("Zero-point must be Int32, Float or Half, found "
                           f"{type_name(zero_point.dtype)}")
    if not 0 <= axis < ndim:
        raise RuntimeError("`axis` must be between 0 and number of dimensions of input")
    if scale.numel() != input.shape[axis]:
        raise RuntimeError("dimensions of scale and zero-point are not consistent with input "
                           "tensor")
    shape = [1] * ndim
    shape[axis] = -1
    return _per_channel(input, scale.detach().float().reshape(shape),
                        zero_point.detach().float().reshape(shape), quant_min, quant_max)


@op("fused_moving_avg_obs_fake_quant(Tensor self, Tensor observer_on, Tensor fake_quant_on, "
    "Tensor(a!) running_min, Tensor(b!) running_max, Tensor(c!) scale, Tensor(d!) zero_point, "
    "float averaging_const, int quant_min, int quant_max, int ch_axis, "
    "bool per_row_fake_quant=False, bool symmetric_quant=False) -> Tensor", out=False, method=False)
def fused_moving_avg_obs_fake_quant(
        input: Tensor, observer_on: Tensor, fake_quant_on: Tensor, running_min: Tensor,
        running_max: Tensor, scale: Tensor, zero_point: Tensor, averaging_const: float,
        quant_min: int, quant_max: int, ch_axis: int, per_row_fake_quant: bool,
        symmetric_quant: bool) -> Tensor:
    """Moving averages of the least and the greatest number, and fake quantisation to their range.

    Averages, `scale` and `zero_point` are written where `observer_on` holds 1; the result is
    rounded where `fake_quant_on` does. With `per_row_fake_quant` each index of `ch_axis` has its
    own.

    >>> import flambeau
    >>> on, low = flambeau.ones(1), flambeau.tensor(float("inf"))
    >>> high = -low
    >>> scale, zero = flambeau.ones(1), flambeau.zeros(1, dtype=flambeau.int)
    >>> x = flambeau.tensor([0.0, 0.26, 1.5])
    >>> flambeau.fused_moving_avg_obs_fake_quant(x, on, on, low, high, scale, zero, 0.01, 0, 15, 0)
    tensor([0.0000, 0.3000, 1.5000])
    """
    if bool(observer_on.reshape(-1)[0] == 1) and input.numel():
        rows = input.detach().movedim(ch_axis, 0).flatten(1) if per_row_fake_quant \
            else input.detach().reshape(1, -1)
        for running, seen, unset in ((running_min, rows.amin(1), np.inf),
                                     (running_max, rows.amax(1), -np.inf)):
            if running.numel() != seen.numel():
                running.resize_(seen.shape).fill_(unset)
            before = running.reshape(-1)
            fresh = before.isinf()
            mean = before + averaging_const * (seen.float() - before)
            running.copy_(seen.float().where(fresh, mean).reshape(running.shape))
        found = affine_parameters(running_min._array.reshape(-1), running_max._array.reshape(-1),
                                  quant_min, quant_max, symmetric_quant)
        for target, value in zip((scale, zero_point), found):
            if target.numel() != value.size:
                target.resize_((value.size,))
            target.copy_(wrap(value.astype(target._array.dtype)))
    if not bool(fake_quant_on.reshape(-1)[0] == 1):
        return input
    scale, zero_point = scale.clone(), zero_point.clone()       # which the next call writes to
    if per_row_fake_quant:
        return fake_quantize_per_channel_affine(input, scale, zero_point, ch_axis, quant_min,
                                                quant_max)
    return fake_quantize_per_tensor_affine(input, scale, zero_point, quant_min, quant_max)
