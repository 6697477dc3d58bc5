"""Quantised tensors: integers that stand for numbers, `(integer - zero_point) * scale`.

A `QuantizedTensor` holds the integers in `_array`, and in `_scheme` what they mean. No kernel of
another op may see them as numbers, so the type has rules of its own: ops that only move elements
run on the integers, some others run on the numbers and quantise the result as the input was; the
rest say that they have no rule. Nothing here is recorded: integers have no derivatives.
`fake_quantize_per_tensor_affine` is the round trip with one.
"""
from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from flambeau._support.devices.backends import could_not_run
from flambeau._support.settings import alert_not_deterministic, warn_once
from flambeau.core import dtypes, narrow_dtypes, type_info
from flambeau.core.calling import overrides
from flambeau.core.promotion import type_name
from flambeau.core.tensor import SeenAsTensor, Tensor, alias, tensor_types, wrap
from flambeau.dispatch.members import member
from flambeau.ops.view.conversion import detach

HELD: dict[Any, np.dtype] = {
    narrow_dtypes.quint8: np.dtype(np.uint8), narrow_dtypes.qint8: np.dtype(np.int8),
    narrow_dtypes.qint32: np.dtype(np.int32), narrow_dtypes.quint4x2: np.dtype(np.uint8),
    narrow_dtypes.quint2x4: np.dtype(np.uint8)}
_BITS = {narrow_dtypes.quint4x2: 4, narrow_dtypes.quint2x4: 2}     # of which bytes hold several
_PER_TENSOR = type_info.per_tensor_affine


def limits(dtype: Any) -> tuple[int, int]:
    """The least and the greatest integer of a quantised dtype."""
    if dtype in _BITS:
        return 0, 2 ** _BITS[dtype] - 1
    info = np.iinfo(HELD[dtype])
    return int(info.min), int(info.max)


class Scheme(NamedTuple):
    """What the integers mean: one scale and zero point, or one for each index of `axis`."""

    dtype: Any
    scale: Any                  # a float, or an array
    zero_point: Any             # an int, or an array of integers or floats
    axis: int | None = None

    @property
    def name(self) -> type_info.qscheme:
        if self.axis is None:
            return _PER_TENSOR
        return type_info.per_channel_affine_float_qparams if self.zero_point.dtype.kind == "f" \
            else type_info.per_channel_affine

    def factors(self, ndim: int) -> tuple[np.ndarray, np.ndarray]:
        """Scale and zero point in float32, shaped to broadcast with the integers."""
        scale, zero = (np.asarray(p, np.float32) for p in (self.scale, self.zero_point))
        if self.axis is not None:
            shape = (-1,) + (1,) * (ndim - 1 - self.axis)
            scale, zero = scale.reshape(shape), zero.reshape(shape)
        return scale, zero

    def quantize(self, x: np.ndarray, shift_last: bool = False) -> np.ndarray:
        """The nearest integers, of a tie the even one: x / scale + zero_point is rounded to float32
        once, then to an integer. With `shift_last`, x / scale is rounded and then shifted."""
        scale, zero = self.factors(x.ndim)
        held = HELD[self.dtype]
        low, high = limits(self.dtype)
        with np.errstate(all="ignore"):
            if shift_last:
                raw = np.rint(x * (np.float32(1) / scale)).astype(np.float64) + zero
            else:
                steps = x * (np.float32(1) / scale).astype(np.float64) + zero
                raw = np.rint(steps.astype(np.float32)).astype(np.float64)
        nowhere = low if held.itemsize > 1 else high if self.axis is None else 0
        raw = np.where(np.isnan(raw), nowhere, np.clip(raw, low, high))
        return raw.astype(held, order="C")

    def dequantize(self, q: np.ndarray) -> np.ndarray:
        scale, zero = self.factors(q.ndim)
        return (q.astype(np.float32) - zero) * scale

    def dequantize_fused(self, q: np.ndarray) -> np.ndarray:
        """The numbers as vector units compute them: q · scale - zero_point · scale, where the first
        product is not rounded."""
        scale, zero = self.factors(q.ndim)
        return (q * scale.astype(np.float64) - zero * scale).astype(np.float32)

    def same(self, other: Scheme) -> bool:
        return (self.dtype, self.axis) == (other.dtype, other.axis) and all(
            np.array_equal(a, b) for a, b in zip(self[1:3], other[1:3]))


class QuantizedTensor(SeenAsTensor, Tensor):
    """Integers with a meaning. Users see it as `Tensor` with `is_quantized`."""

    _scheme: Any = None
    is_quantized = property(lambda self: True)

    @property
    def dtype(self) -> Any:
        return self._scheme.dtype

    @property
    def data(self) -> Tensor:
        return make_quantized(self._array, self._scheme)

    @data.setter
    def data(self, value: Tensor) -> None:
        if type(value) is not QuantizedTensor:
            raise RuntimeError("Attempted to call `variable.set_data(tensor)`, but `variable` and "
                               "`tensor` have incompatible tensor type.")
        self._array, self._scheme = value._array, value._scheme

    def is_signed(self) -> bool:
        raise RuntimeError("isSignedType not supported for quantized types")

    def numpy(self, *, force: bool = False) -> np.ndarray:
        raise TypeError(f"Got unsupported ScalarType {type_name(self.dtype)}")

    def tolist(self) -> Any:
        raise RuntimeError("load_scalar: invalid type")

    def item(self) -> Any:
        if self._array.size != 1:
            raise RuntimeError(f"a Tensor with {self._array.size} elements cannot be converted to "
                               "Scalar")
        return dequantize(self).item()

    def detach(self) -> Tensor:
        return overrides.own_rules[QuantizedTensor](detach, (self,), {})

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        return self.to(dtype) if dtype else f"torch.quantized.{type_name(self.dtype)}Tensor"

    def set_(self, *args: Any, **kwargs: Any) -> Tensor:
        raise could_not_run("set_", "QuantizedCPU", "CPU", "Meta")

    def resize_(self, *sizes: Any, memory_format: Any = None) -> Tensor:
        if self._scheme.axis is not None:
            raise RuntimeError("Can only resize quantized tensors with per-tensor schemes!")
        alert_not_deterministic("quantized_resize_cpu_")
        return Tensor.resize_(self, *sizes)

    def __getitem__(self, index: Any) -> Tensor:
        return overrides.own_rules[QuantizedTensor](Tensor.__getitem__, (self, index), {})

    def __setitem__(self, index: Any, value: Any) -> None:
        self[index].copy_(value if type(value) in tensor_types else wrap(np.float32(value)))

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if id(self) not in memo:
            memo[id(self)] = make_quantized(self._array.copy(), self._scheme)
        return memo[id(self)]


QuantizedTensor.__module__ = "torch"
QuantizedTensor.__name__ = QuantizedTensor.__qualname__ = "Tensor"
overrides.internal_types.add(QuantizedTensor)


def make_quantized(array: np.ndarray, scheme: Scheme) -> QuantizedTensor:
    """These integers, meaning that."""
    if scheme.dtype not in _BITS:
        warn_once("torch.quantize_per_tensor, torch.quantize_per_channel and other quantized "
                  "tensor creation functions that produce tensors with dtype torch.quint8, "
                  "torch.qint8, and torch.qint32 are deprecated and will be removed in a future "
                  "PyTorch release. Please see https://github.com/pytorch/pytorch/issues/184982 "
                  "for more information.")
    result = alias(array, QuantizedTensor)
    result._scheme = scheme
    return result


# ---- what users call ----------------------------------------------------------------------------

def expect_float(input: Tensor, name: str) -> None:
    if type(input) is QuantizedTensor:
        raise could_not_run(name, "QuantizedCPU", "CPU", "Meta")
    if input._array.dtype != np.float32:
        raise RuntimeError(f"Quantize only works on Float Tensor, got {type_name(input.dtype)}")


def _integer_dtype(dtype: Any) -> np.dtype:
    if dtype not in HELD:
        raise RuntimeError(f"ScalarType {type_name(dtype)} is not supported in new_qtensor.")
    return HELD[dtype]


def _check_zero_point(zero_point: int, dtype: Any, name: str) -> None:
    _integer_dtype(dtype)
    low, high = limits(dtype)
    if dtype in (narrow_dtypes.quint4x2, narrow_dtypes.quint2x4):
        low, high = 0, 255                      # of the bytes that hold several
    if not low <= zero_point <= high:
        side = "below lower" if zero_point < low else "above upper"
        raise RuntimeError(f"{name} zero_point {zero_point} is {side} bound.")


@member("quantize_per_tensor(Tensor self, float scale, int zero_point, ScalarType dtype) -> Tensor",
        "quantize_per_tensor.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, "
        "ScalarType dtype) -> Tensor",
        "quantize_per_tensor.tensors(Tensor[] tensors, Tensor scales, Tensor zero_points, "
        "ScalarType dtype) -> Tensor[]", method=False)
def quantize_per_tensor(self: Tensor, scale: Any, zero_point: Any, dtype: Any, tensors: Any,
                        scales: Tensor, zero_points: Tensor) -> Any:
    """float32 numbers as integers of a quantised dtype: round(x / scale) + zero_point.

    A list of tensors, with tensors of scales and zero points, gives a tuple.

    >>> import flambeau
    >>> q = flambeau.quantize_per_tensor(flambeau.tensor([-1.0, 0.26]), 0.1, 10, flambeau.quint8)
    >>> q.int_repr(), q.dequantize()
    (tensor([ 0, 13], dtype=torch.uint8), tensor([-1.0000,  0.3000]))
    """
    if self is None:
        return tuple([quantize_per_tensor(x, float(s), int(z), dtype) for x, s, z in zip(
            tensors, scales, zero_points)])
    expect_float(self, "quantize_per_tensor")
    scheme = Scheme(dtype, float(scale), int(zero_point))
    _check_zero_point(scheme.zero_point, dtype, "quantize_tensor_per_tensor_affine")
    return make_quantized(scheme.quantize(self._array), scheme)


@member("quantize_per_channel(Tensor self, Tensor scales, Tensor zero_points, int axis, "
        "ScalarType dtype) -> Tensor", method=False)
def quantize_per_channel(input: Tensor, scales: Tensor, zero_points: Tensor, axis: int,
                         dtype: Any) -> Tensor:
    """`quantize_per_tensor` with a scale and a zero point for each index of dimension `axis`.

    >>> import flambeau
    >>> x = flambeau.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> scales, zeros = flambeau.tensor([0.5, 2.0]), flambeau.tensor([0, 1])
    >>> flambeau.quantize_per_channel(x, scales, zeros, 0, flambeau.qint8).int_repr()
    tensor([[2, 4],
            [2, 3]], dtype=torch.int8)
    """
    expect_float(input, "quantize_per_channel")
    for name, given in (("scale", scales), ("zero_points", zero_points)):
        if given._array.ndim != 1:
            raise RuntimeError(f"{name} tensor must have dimension 1")
    if scales._array.size != zero_points._array.size:
        raise RuntimeError("number of elements in scales and zero_points must match")
    ndim = input._array.ndim
    if not 0 <= axis < ndim:
        kind = "float qparams" if zero_points.is_floating_point() else "affine"
        raise RuntimeError(f"Channel axis out of range in per channel {kind} quantization. Got: "
                           f"{axis}Expected: [0, {ndim})")
    wanted = input._array.shape[axis]
    for name, given in (("scales", scales), ("zero_points", zero_points)):
        if given.numel() != wanted:
            raise RuntimeError(f"length of {name} must equal to channel, expected {wanted} got, "
                               f"{given.numel()}")
    scheme, floating = _by_channel(dtype, scales, zero_points, axis)
    for zero in [] if floating else zero_points.tolist():
        _check_zero_point(zero, dtype, "quantize_tensor_per_channel_affine")
    _integer_dtype(dtype)
    return make_quantized(scheme.quantize(input._array), scheme)


def _by_channel(dtype: Any, scales: Tensor, zero_points: Tensor, axis: int) -> tuple[Scheme, bool]:
    """The scheme, and whether its zero points are floating numbers."""
    floating = zero_points.is_floating_point()
    return Scheme(dtype, scales._array.astype(np.float32 if floating else np.float64),
                  zero_points._array.astype(np.float32 if floating else np.int64), axis), floating


def _type_of_integers(self: Tensor) -> Any:
    found = {held: quantized for quantized, held in HELD.items() if quantized not in _BITS}.get(
        self._array.dtype)
    if found is None:
        raise RuntimeError("Creation of quantized tensor requires quantized dtype like "
                           "torch.quint8")
    return found


@member("_make_per_tensor_quantized_tensor(Tensor self, float scale, int zero_point) -> Tensor",
        method=False)
def _make_per_tensor_quantized_tensor(self: Tensor, scale: float, zero_point: int) -> Tensor:
    """These integers, with what they mean."""
    return make_quantized(self._array.copy(), Scheme(_type_of_integers(self), scale, zero_point))


@member("_make_per_channel_quantized_tensor(Tensor self, Tensor scale, Tensor zero_point, "
        "int axis) -> Tensor", method=False)
def _make_per_channel_quantized_tensor(self: Tensor, scale: Tensor, zero_point: Tensor,
                                       axis: int) -> Tensor:
    """These integers, with what they mean in each channel."""
    if scale.numel() != zero_point.numel():
        raise RuntimeError("number of elements in scales and zero_points must match")
    scheme, _ = _by_channel(_type_of_integers(self), scale, zero_point, axis)
    return make_quantized(self._array.copy(), scheme)


@member("quantize_per_tensor_dynamic(Tensor self, ScalarType dtype, bool reduce_range) -> Tensor",
        method=False)
def quantize_per_tensor_dynamic(input: Tensor, dtype: Any, reduce_range: bool) -> Tensor:
    """`quantize_per_tensor` with scale and zero point chosen to span the numbers and zero.

    `reduce_range` leaves out one bit.

    >>> import flambeau
    >>> x = flambeau.tensor([-1.0, 1.55])
    >>> flambeau.quantize_per_tensor_dynamic(x, flambeau.quint8, False).q_zero_point()
    100
    """
    expect_float(input, "quantize_per_tensor_dynamic")
    if dtype not in (narrow_dtypes.quint8, narrow_dtypes.qint8):
        raise RuntimeError("dtype " + (type_name(dtype)) + " not supported")
    x = input._array
    low, high = limits(dtype)
    shift = 1 if reduce_range else 0
    scale, zero = affine_parameters(float(x.min()) if x.size else 0.0,
                                    float(x.max()) if x.size else 0.0,
                                    low >> shift, high >> shift)
    return quantize_per_tensor(input, float(scale), int(zero), dtype)


def affine_parameters(low: Any, high: Any, qmin: int, qmax: int, symmetric: bool = False
                      ) -> tuple[Any, Any]:
    """Scale and zero point that map [low, high], widened to hold 0, to the integers given.

    Numbers or arrays. With `symmetric` the middle stands for 0 where the range has both signs.
    """
    low = np.minimum(np.asarray(low, np.float64), 0.0)
    high = np.maximum(np.asarray(high, np.float64), 0.0)
    steps = qmax - qmin
    both = (low < 0) & (high > 0) & symmetric
    down, up = -(steps // 2 + 1), steps // 2
    widest = np.maximum(np.abs(low / down), np.abs(high / up))
    low, high = np.where(both, widest * down, low), np.where(both, widest * up, high)
    scale = (high - low) / steps
    with np.errstate(all="ignore"):
        useless = (scale.astype(np.float32) == 0) | np.isinf(np.float32(1) / scale.astype(
            np.float32))
        scale = np.where(useless, 0.1, scale)
        stretch = np.maximum(6.1e-5 / scale, 1.0)               # the smallest scale
        low, high, scale = low * stretch, high * stretch, scale * stretch
        at_low, at_high = qmin - low / scale, qmax - high / scale
        nearer_low = abs(qmin) + np.abs(low / scale) < abs(qmax) + np.abs(high / scale)
    zero = np.where(nearer_low, at_low, at_high)
    zero = np.where(both, (qmin + qmax) / 2, zero)
    return scale, np.clip(np.rint(zero), qmin, qmax).astype(np.int64)


@member("dequantize.self(Tensor self) -> Tensor",
        "dequantize.tensors(Tensor[] tensors) -> Tensor[]")
def dequantize(input: Any, tensors: Any) -> Any:
    """The numbers that a quantised tensor (or each of a list) stands for; others as float32.

    >>> import flambeau
    >>> x = flambeau.tensor([1.04])
    >>> flambeau.quantize_per_tensor(x, 0.1, 0, flambeau.qint8).dequantize()
    tensor([1.])
    """
    if input is None:
        return tuple([dequantize(t) for t in tensors])
    if type(input) is not QuantizedTensor:
        return input.to(dtypes.float32)
    return wrap(input._scheme.dequantize(input._array))


@member("int_repr(Tensor self) -> Tensor")
def int_repr(input: Tensor) -> Tensor:
    """The integers of a quantised tensor.

    >>> import flambeau
    >>> x = flambeau.tensor([1.04])
    >>> flambeau.quantize_per_tensor(x, 0.1, 5, flambeau.qint8).int_repr()
    tensor([15], dtype=torch.int8)
    """
    bits = _BITS.get(scheme_of(input, "int_repr").dtype)
    if bits is None:
        return wrap(input._array.copy())
    each = 8 // bits                                        # in a byte, the first the lowest
    flat = np.zeros(-(-input._array.size // each) * each, np.uint8)
    flat[:input._array.size] = input._array.ravel()
    return wrap(np.bitwise_or.reduce(flat.reshape(-1, each) << (np.arange(each, dtype=np.uint8)
                                                                * np.uint8(bits)), axis=1))


def scheme_of(input: Tensor, name: str, per_channel: bool | None = None) -> Scheme:
    if type(input) is not QuantizedTensor:
        raise could_not_run(name, "CPU", "Meta", "QuantizedCPU")
    scheme = input._scheme
    if per_channel is not None and per_channel is (scheme.axis is None):
        wanted = "kPerTensorAffine" if not per_channel else \
            "kPerChannelAffine || quantizer->qscheme() == kPerChannelAffineFloatQParams"
        raise RuntimeError(f"Expected quantizer->qscheme() == {wanted} to be true, but got false.  "
                           "(Could this error message be improved?  If so, please report an "
                           "enhancement request to PyTorch.)")
    return scheme


def qscheme(self: Tensor) -> type_info.qscheme:
    """How the integers of a quantised tensor map to numbers."""
    return scheme_of(self, "qscheme").name


member("qscheme(Tensor self) -> QScheme", body=qscheme, function=False, doc=qscheme.__doc__)


@member("q_scale(Tensor self) -> float")
def q_scale(input: Tensor) -> float:
    """The scale of a tensor that was quantised with one."""
    return scheme_of(input, "q_scale", False).scale


@member("q_zero_point(Tensor self) -> int")
def q_zero_point(input: Tensor) -> int:
    """The integer that stands for 0, of a tensor that was quantised with one."""
    return scheme_of(input, "q_zero_point", False).zero_point


@member("q_per_channel_scales(Tensor self) -> Tensor")
def q_per_channel_scales(input: Tensor) -> Tensor:
    """The scales of a tensor that was quantised with one for each channel."""
    return wrap(scheme_of(input, "q_per_channel_scales", True).scale.copy())


@member("q_per_channel_zero_points(Tensor self) -> Tensor")
def q_per_channel_zero_points(input: Tensor) -> Tensor:
    """The zero points of a tensor that was quantised with one for each channel."""
    return wrap(scheme_of(input, "q_per_channel_zero_points", True).zero_point.copy())


@member("q_per_channel_axis(Tensor self) -> int")
def q_per_channel_axis(input: Tensor) -> Any:
    """The dimension of the channels, of a tensor that was quantised with a scale for each."""
    return scheme_of(input, "q_per_channel_axis", True).axis


import_module("flambeau.ops.quantized.calls")      # the answers to calls with such tensors
__all__ = ["QuantizedTensor"]
