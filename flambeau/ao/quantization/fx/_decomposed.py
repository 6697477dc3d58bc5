"""`torch.ops.quantized_decomposed`: quantisation on plain tensors of integers, as exported graphs
write it.

A number x becomes clamp(round(x / scale) + zero_point, quant_min, quant_max), and an integer q
becomes (q - zero_point) * scale.

>>> quantize = torch.ops.quantized_decomposed.quantize_per_tensor
>>> quantize(torch.tensor([-1.0, 0.5]), 0.01, 100, 0, 255, torch.uint8)
tensor([  0, 150], dtype=torch.uint8)
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.ao.quantization.utils import determine_qparams, validate_qmin_qmax
from flambeau.library import Library, impl

quantized_decomposed_lib = Library("quantized_decomposed", "DEF")

_INTEGER_DTYPES = [flambeau.uint8, flambeau.int8, flambeau.uint16, flambeau.int16, flambeau.int32]
_FLOAT_DTYPES = [flambeau.float8_e5m2, flambeau.float8_e4m3fn]
_DTYPE_TO_QVALUE_BOUNDS: dict[Any, tuple[float, float]] = {
    **{dtype: (flambeau.iinfo(dtype).min, flambeau.iinfo(dtype).max) for dtype in _INTEGER_DTYPES},
    **{dtype: (int(flambeau.finfo(dtype).min), int(flambeau.finfo(dtype).max))
       for dtype in _FLOAT_DTYPES}}


def _quant_min_max_bounds_check(quant_min: int, quant_max: int, dtype: Any) -> None:
    if dtype not in _DTYPE_TO_QVALUE_BOUNDS:
        raise ValueError(f"Unsupported dtype: {dtype}")
    low, high = _DTYPE_TO_QVALUE_BOUNDS[dtype]
    if quant_min < low:
        raise AssertionError("quant_min out of bounds for dtype, "
                             f"quant_min_lower_bound: {low} quant_min: {quant_min}")
    if quant_max > high:
        raise AssertionError("quant_max out of bounds for dtype, "
                             f"quant_max_upper_bound: {high} quant_max: {quant_max}")


def _wide(input: Tensor) -> Tensor:
    """Half-precision numbers as float32, which all others must be already."""
    if input.dtype in (flambeau.float16, flambeau.bfloat16):
        input = input.to(flambeau.float32)
    if input.dtype is not flambeau.float32:
        raise AssertionError(
            f"Expecting input to have dtype torch.float32, but got dtype: {input.dtype}")
    return input


def _expect(input: Tensor, dtype: Any) -> None:
    if input.dtype is not dtype:
        raise AssertionError(f"Expecting input to have dtype: {dtype}, but got {input.dtype}")


def _define(schema: str) -> Callable[[Any], Any]:
    """Declare an op: the function under it computes values, and shapes on `meta` tensors."""
    quantized_decomposed_lib.define(schema)
    name = schema.partition("(")[0]

    def register(function: Any) -> Any:
        impl(quantized_decomposed_lib, name, "CompositeExplicitAutograd")(function)
        return function
    return register


def _meta(name: str) -> Callable[[Any], Any]:
    """Register an op's shapes, where its kernel looks at values."""
    return impl(quantized_decomposed_lib, name, "Meta")


# ---- one scale for all --------------------------------------------------------------------------

@_define("quantize_per_tensor(Tensor input, float scale, int zero_point, "
         "int quant_min, int quant_max, ScalarType dtype) -> Tensor")
def quantize_per_tensor(input: Tensor, scale: float, zero_point: int, quant_min: int,
                        quant_max: int, dtype: Any) -> Tensor:
    """The integers nearest to `input / scale + zero_point`, between `quant_min` and `quant_max`."""
    input = _wide(input)
    _quant_min_max_bounds_check(quant_min, quant_max, dtype)
    return flambeau.clamp(flambeau.round(input * (1.0 / scale)) + zero_point,
                          quant_min, quant_max).to(dtype)


def _one_number(name: str, value: Tensor) -> None:
    if value.numel() != 1:
        raise AssertionError(
            f"Expecting {name} tensor to be one element, but received : {value.numel()}")


@_define("quantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, "
         "int quant_min, int quant_max, ScalarType dtype) -> Tensor")
def quantize_per_tensor_tensor(input: Tensor, scale: Tensor, zero_point: Tensor, quant_min: int,
                               quant_max: int, dtype: Any) -> Tensor:
    """`quantize_per_tensor` with the scale and the zero point in tensors."""
    _one_number("zero_point", zero_point)
    _one_number("scale", scale)
    return quantize_per_tensor(input, scale.item(), zero_point.item(),
                               quant_min, quant_max, dtype)


@_define("quantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor zero_point, "
         "Tensor quant_min, Tensor quant_max, ScalarType dtype) -> Tensor")
def quantize_per_tensor_tensor2(input: Tensor, scale: Tensor, zero_point: Tensor,
                                quant_min: Tensor, quant_max: Tensor, dtype: Any) -> Tensor:
    """`quantize_per_tensor` with the bounds in tensors as well."""
    return quantize_per_tensor_tensor(input, scale, zero_point, quant_min.item(),
                                      quant_max.item(), dtype)


@_define("dequantize_per_tensor(Tensor input, float scale, int zero_point, int quant_min, "
         "int quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor")
def dequantize_per_tensor(input: Tensor, scale: Any, zero_point: Any, quant_min: int,
                          quant_max: int, dtype: Any, *, out_dtype: Any = None) -> Tensor:
    """`(input - zero_point) * scale`, in float32 or `out_dtype`."""
    _expect(input, dtype)
    if dtype not in _DTYPE_TO_QVALUE_BOUNDS:
        raise ValueError(f"Unsupported dtype in dequantize_per_tensor: {dtype}")
    return (input.to(out_dtype or flambeau.float32) - zero_point) * scale


@_define("dequantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, "
         "int quant_min, int quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor")
def dequantize_per_tensor_tensor(input: Tensor, scale: Tensor, zero_point: Tensor, quant_min: int,
                                 quant_max: int, dtype: Any, *, out_dtype: Any = None) -> Tensor:
    """`dequantize_per_tensor` with the scale and the zero point in tensors."""
    _one_number("zero_point", zero_point)
    _one_number("scale", scale)
    return dequantize_per_tensor(input, scale.item(), zero_point.item(), quant_min, quant_max,
                                 dtype, out_dtype=out_dtype)


@_define("dequantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor zero_point, Tensor "
         "quant_min, Tensor quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor")
def dequantize_per_tensor_tensor2(input: Tensor, scale: Tensor, zero_point: Tensor,
                                  quant_min: Tensor, quant_max: Tensor, dtype: Any, *,
                                  out_dtype: Any = None) -> Tensor:
    """`dequantize_per_tensor` with the bounds in tensors as well."""
    return dequantize_per_tensor_tensor(
        input, scale, zero_point, quant_min.item(), quant_max.item(),
        dtype, out_dtype=out_dtype)


@_meta("quantize_per_tensor")
@_meta("quantize_per_tensor.tensor")
@_meta("quantize_per_tensor.tensor2")
@_meta("quantize_per_channel")
@_meta("quantize_per_token")
@_meta("quantize_per_channel_group")
def _shape_of_integers(input: Tensor, *args: Any) -> Tensor:
    dtype = next(a for a in args if isinstance(a, flambeau.dtype))
    return flambeau.empty_like(input, dtype=dtype)


@_meta("dequantize_per_tensor")
@_meta("dequantize_per_tensor.tensor")
@_meta("dequantize_per_tensor.tensor2")
@_meta("dequantize_per_channel")
def _shape_of_numbers(input: Tensor, *args: Any, out_dtype: Any = None) -> Tensor:
    return flambeau.empty_like(input, dtype=out_dtype or flambeau.float32)


# ---- finding the scale --------------------------------------------------------------------------

def _qparams(input: Tensor, quant_min: int, quant_max: int, eps: float, dtype: Any,
             qscheme: Any) -> tuple[Tensor, Tensor]:
    if input.dtype not in (flambeau.float32, flambeau.float16, flambeau.bfloat16):
        raise AssertionError("Expecting input to have dtype torch.float32/16/b16, but got dtype: "
                             f"{input.dtype}")
    if dtype not in _DTYPE_TO_QVALUE_BOUNDS:
        raise AssertionError(f"Expecting target dtype to be one of "
                             f"{_DTYPE_TO_QVALUE_BOUNDS.keys()}, but got: {dtype}")
    validate_qmin_qmax(quant_min, quant_max)
    low, high = flambeau.aminmax(input)
    return determine_qparams(low, high, quant_min, quant_max, dtype, flambeau.tensor([eps]),
                             has_customized_qrange=False, qscheme=qscheme)


@_define("choose_qparams.tensor(Tensor input, int quant_min, int quant_max, "
         "float eps, ScalarType dtype) -> (Tensor, Tensor)")
def choose_qparams_tensor(input: Tensor, qmin: int, qmax: int, eps: float, dtype: Any
                          ) -> tuple[Tensor, Tensor]:
    """The scale and the zero point that fit all numbers of a tensor."""
    return _qparams(input, qmin, qmax, eps, dtype, flambeau.per_tensor_affine)


@_define("choose_qparams_symmetric.tensor(Tensor input, int quant_min, int quant_max, "
         "float eps, ScalarType dtype) -> (Tensor, Tensor)")
def choose_qparams_symmetric_tensor(input: Tensor, qmin: int, qmax: int, eps: float, dtype: Any
                                    ) -> tuple[Tensor, Tensor]:
    """The scale that fits all numbers of a tensor, with 0 in the middle of the integers."""
    return _qparams(input, qmin, qmax, eps, dtype, flambeau.per_tensor_symmetric)


@_meta("choose_qparams.tensor")
@_meta("choose_qparams_symmetric.tensor")
def _shape_of_qparams(input: Tensor, quant_min: int, quant_max: int, eps: float, dtype: Any
                      ) -> tuple[Tensor, Tensor]:
    return (flambeau.empty(1, dtype=flambeau.double, device=input.device),
            flambeau.empty(1, dtype=flambeau.int64, device=input.device))


# ---- a scale for each channel -------------------------------------------------------------------

def _along(values: Tensor, axis: int, ndim: int) -> Tensor:
    """A row of values, shaped to go along one dimension of several."""
    shape = [1] * ndim
    shape[axis] = -1
    return values.view(shape)


@_define("quantize_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, "
         "int quant_min, int quant_max, ScalarType dtype) -> Tensor")
def quantize_per_channel(input: Tensor, scales: Tensor, zero_points: Tensor, axis: int,
                         quant_min: int, quant_max: int, dtype: Any) -> Tensor:
    """`quantize_per_tensor` with a scale and a zero point for each channel along `axis`."""
    input = _wide(input)
    if axis >= input.dim():
        raise AssertionError(f"Expecting axis to be < {input.dim()}")
    _quant_min_max_bounds_check(quant_min, quant_max, dtype)
    scales, zero_points = (_along(v, axis, input.ndim) for v in (scales, zero_points))
    return flambeau.clamp(flambeau.round(input * (1.0 / scales)) + zero_points,
                          quant_min, quant_max).to(dtype)


@_define("dequantize_per_channel(Tensor input, Tensor scales, Tensor? zero_points, int axis, "
         "int quant_min, int quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor")
def dequantize_per_channel(input: Tensor, scales: Tensor, zero_points: Tensor | None, axis: int,
                           quant_min: int, quant_max: int, dtype: Any, *, out_dtype: Any = None
                           ) -> Tensor:
    """`dequantize_per_tensor` with a scale and a zero point for each channel along `axis`."""
    _expect(input, dtype)
    if axis >= input.dim():
        raise AssertionError(f"Expecting axis to be < {input.dim()}")
    _quant_min_max_bounds_check(quant_min, quant_max, dtype)
    target = out_dtype or flambeau.float32
    if zero_points is not None:
        input = input - _along(zero_points, axis, input.ndim)
    return (input.to(target) * _along(scales, axis, input.ndim)).to(target)


class FakeQuantPerChannel(flambeau.autograd.Function):
    """There and back: what rounding to a scale for each channel leaves of the numbers. Gradients
    go through where nothing was cut off."""

    @staticmethod
    def forward(ctx: Any, input: Tensor, scales: Tensor, zero_points: Tensor, axis: int,
                quant_min: int, quant_max: int) -> Tensor:
        if scales.dtype is not flambeau.float32:
            scales = scales.to(flambeau.float32)
        if zero_points.dtype is not flambeau.int32:
            zero_points = zero_points.to(flambeau.int32)
        if input.dtype is not flambeau.float32:
            raise AssertionError(
                f"Expecting input to have dtype torch.float32, but got dtype: {input.dtype}")
        if axis >= input.dim():
            raise AssertionError(f"Expecting axis to be < {input.dim()}")
        scales, zero_points = (_along(v, axis, input.ndim) for v in (scales, zero_points))
        rounded = flambeau.round(input * (1.0 / scales)) + zero_points
        ctx.save_for_backward((rounded >= quant_min) & (rounded <= quant_max))
        return (rounded.clamp(quant_min, quant_max) - zero_points) * scales

    @staticmethod
    def backward(ctx: Any, gy: Tensor) -> Any:
        kept, = ctx.saved_tensors
        return gy * kept, None, None, None, None, None


quantized_decomposed_lib.define(
    "fake_quant_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, "
    "int quant_min, int quant_max) -> Tensor")


@impl(quantized_decomposed_lib, "fake_quant_per_channel", "Autograd")
def fake_quant_per_channel(input: Tensor, scales: Tensor, zero_points: Tensor, axis: int,
                           quant_min: int, quant_max: int) -> Tensor:
    """`FakeQuantPerChannel` as an op."""
    return FakeQuantPerChannel.apply(input, scales, zero_points, axis, quant_min, quant_max)


@_meta("fake_quant_per_channel")
def fake_quant_per_channel_meta(input: Tensor, scales: Tensor, zero_points: Tensor, axis: int,
                                quant_min: int, quant_max: int) -> Tensor:
    """The shape of `fake_quant_per_channel`'s result."""
    return flambeau.empty_like(input)


# ---- a scale for each token ---------------------------------------------------------------------

def _per_token(value: Tensor, like: Tensor) -> Tensor:
    return value.expand(like.shape[:-1] + (1,))


@_define("choose_qparams_per_token(Tensor input, ScalarType dtype) -> (Tensor, Tensor)")
def choose_qparams_per_token(input: Tensor, dtype: Any) -> tuple[Tensor, Tensor]:
    """For each row, the scale that maps its greatest absolute value to 127, and 0."""
    scales = input.abs().amax(dim=-1, keepdim=True)
    if scales.dtype is flambeau.float16:        # a scale so small would be 0 in half precision
        scales = scales.float()
    if dtype is not flambeau.int8:
        raise Exception(f"unsupported dtype in choose_qparams_per_token: {dtype}")
    scales = scales.clamp(min=1e-5).div(2 ** 7 - 1)
    return scales, flambeau.zeros_like(scales)


@_define("_choose_qparams_per_token_asymmetric_impl(Tensor input, ScalarType dtype) "
         "-> (Tensor, Tensor)")
def _choose_qparams_per_token_asymmetric_impl(input: Tensor, dtype: Any) -> tuple[Tensor, Tensor]:
    """For each row, the scale and the zero point that map its range, and 0, to int8: of the ends
    the one is exact that rounding moves least."""
    quant_min, quant_max = -128, 127
    low = flambeau.amin(input, dim=-1, keepdim=True).clamp(max=0)
    high = flambeau.amax(input, dim=-1, keepdim=True).clamp(min=0)
    eps = flambeau.finfo(flambeau.float32).eps
    scale = ((high - low) / float(quant_max - quant_min)).clamp(min=eps)
    from_low, from_high = low / scale, high / scale
    error_low, error_high = quant_min + from_low, quant_max + from_high
    zero = flambeau.where(error_low + error_high > 0, quant_min - from_low, quant_max - from_high)
    zero = flambeau.clamp(zero, quant_min, quant_max).round()
    return scale.to(flambeau.float64), zero.to(flambeau.int64)


@_define("choose_qparams_per_token_asymmetric(Tensor input, ScalarType dtype) -> (Tensor, Tensor)")
def choose_qparams_per_token_asymmetric(input: Tensor, dtype: Any) -> tuple[Tensor, Tensor]:
    """For each row, the scale and the zero point that map its range, and 0, to int8."""
    return _choose_qparams_per_token_asymmetric_impl(input, dtype)


@_meta("choose_qparams_per_token")
@_meta("choose_qparams_per_token_asymmetric")
def _shape_of_token_qparams(input: Tensor, dtype: Any) -> tuple[Tensor, Tensor]:
    size = list(input.shape[:-1]) + [1]
    return (flambeau.empty(size, dtype=flambeau.double, device=input.device),
            flambeau.empty(size, dtype=flambeau.int64, device=input.device))


def _per_token_quant_qparam_dim_check(input: Tensor, scales: Tensor, zero_points: Tensor) -> None:
    tokens = math.prod(input.shape[:-1])
    for name, values in (("scales", scales), ("zero_points", zero_points)):
        if values.numel() != tokens:
            raise AssertionError(f"num_tokens: {tokens} {name}: {values.size()}")


@_define("quantize_per_token(Tensor input, Tensor scales, Tensor zero_points, "
         "int quant_min, int quant_max, ScalarType dtype) -> Tensor")
def quantize_per_token(input: Tensor, scales: Tensor, zero_points: Tensor, quant_min: int,
                       quant_max: int, dtype: Any) -> Tensor:
    """`quantize_per_tensor` with a scale and a zero point for each row."""
    _quant_min_max_bounds_check(quant_min, quant_max, dtype)
    _per_token_quant_qparam_dim_check(input, scales, zero_points)
    return input.mul(1.0 / scales).add(zero_points).round().clamp(quant_min, quant_max).to(dtype)


@_define("dequantize_per_token(Tensor input, Tensor scales, Tensor zero_points, int quant_min, "
         "int quant_max, ScalarType dtype, ScalarType output_dtype) -> Tensor")
def dequantize_per_token(input: Tensor, scales: Tensor, zero_points: Tensor, quant_min: int,
                         quant_max: int, dtype: Any, output_dtype: Any = flambeau.float32
                         ) -> Tensor:
    """`dequantize_per_tensor` with a scale and a zero point for each row."""
    return ((input - zero_points) * scales).to(output_dtype)


@_meta("dequantize_per_token")
def dequantize_per_token_meta(input: Tensor, scales: Tensor, zero_points: Tensor, quant_min: int,
                              quant_max: int, dtype: Any, output_dtype: Any = flambeau.float32
                              ) -> Tensor:
    """The shape of `dequantize_per_token`'s result."""
    _quant_min_max_bounds_check(quant_min, quant_max, dtype)
    return flambeau.empty_like(input, dtype=output_dtype)


# ---- a scale for each group of a row ------------------------------------------------------------

def _grouped(input: Tensor, scales: Tensor, group_size: int) -> Tensor:
    """The groups as rows."""
    if group_size <= 1:
        raise AssertionError("group_size must be > 1")
    if group_size > input.shape[-1] and scales.shape[-1] == 1:
        group_size = input.shape[-1]
    if input.shape[-1] % group_size:
        raise AssertionError(f"input.shape[-1] ({input.shape[-1]}) must be divisible by "
                             f"group_size ({group_size})")
    if input.dim() != 2:
        raise AssertionError("input must be 2D")
    return input.reshape(-1, group_size)


@_define("quantize_per_channel_group(Tensor input, Tensor scales, Tensor zero_points, "
         "int quant_min, int quant_max, ScalarType dtype, int group_size) -> Tensor")
def quantize_per_channel_group(input: Tensor, scales: Tensor, zero_points: Tensor, quant_min: int,
                               quant_max: int, dtype: Any, group_size: int = 128) -> Tensor:
    """`quantize_per_tensor` of a matrix with a scale and a zero point for each `group_size`
    numbers of a row."""
    rows = _grouped(input, scales, group_size)
    if not bool(flambeau.isfinite(rows).all()):
        raise AssertionError("input must be finite")
    return rows.mul(1.0 / scales.reshape(-1, 1)).add(zero_points.reshape(-1, 1)).round().clamp(
        quant_min, quant_max).to(dtype).reshape_as(input)


@_define("dequantize_per_channel_group(Tensor input, Tensor scales, Tensor? zero_points, "
         "int quant_min, int quant_max, ScalarType dtype, int group_size, "
         "ScalarType output_dtype) -> Tensor")
def dequantize_per_channel_group(input: Tensor, scales: Tensor, zero_points: Tensor | None,
                                 quant_min: int, quant_max: int, dtype: Any, group_size: int = 128,
                                 output_dtype: Any = flambeau.float32) -> Tensor:
    """`dequantize_per_tensor` of a matrix with a scale and a zero point for each `group_size`
    numbers of a row."""
    rows = _grouped(input, scales, group_size)
    zeros: Any = 0 if zero_points is None else zero_points.reshape(-1, 1)
    return (rows - zeros).mul(scales.reshape(-1, 1)).reshape_as(input).to(output_dtype)


# ---- a change of type ---------------------------------------------------------------------------

@_define("convert_element_type.no_fuse(Tensor input, ScalarType dtype) -> Tensor")
def convert_element_type(input: Tensor, dtype: Any) -> Tensor:
    """The numbers in another type, in a step of its own that compilers leave alone."""
    return flambeau.ops.prims.convert_element_type.default(input, dtype)


@_meta("convert_element_type.no_fuse")
def convert_element_type_meta(input: Tensor, dtype: Any) -> Tensor:
    """The shape of `convert_element_type`'s result."""
    return flambeau.empty_like(input, dtype=dtype)
