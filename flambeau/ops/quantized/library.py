"""`torch.ops.quantized`: what computes on quantised tensors with a scale for the result.

Sums of products are exact: the integers, less their zero points, are multiplied and added; only the
sum is rounded to float32, multiplied by the scales and quantised again. All else is the ordinary op
on the numbers that the integers stand for.

>>> import flambeau
>>> x = flambeau.quantize_per_tensor(flambeau.tensor([[1.0, 2.0]]), 0.5, 0, flambeau.quint8)
>>> w = flambeau.quantize_per_tensor(flambeau.tensor([[0.5, -0.25]]), 0.25, 0, flambeau.qint8)
>>> flambeau.ops.quantized.linear(x, flambeau.ops.quantized.linear_prepack(w), 0.5, 3).dequantize()
tensor([[0.]])
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import flambeau
from flambeau._support.devices.backends import could_not_run
from flambeau.core.tensor import Tensor, wrap
from flambeau.ops.nn import recurrent
from flambeau.ops.nn.affine import linear as float_linear
from flambeau.ops.quantized.tensors import (
    QuantizedTensor,
    Scheme,
    dequantize,
    limits,
    make_quantized,
    quantize_per_tensor,
    quantize_per_tensor_dynamic,
)
from flambeau.ops.spatial.convolution_checks import numbers
from flambeau.ops.spatial.convolve import convolution

F = flambeau.nn.functional


def __getattr__(name: str) -> Any:
    raise AttributeError(f"'_OpNamespace' 'quantized' object has no attribute '{name}'")


def _expect_quantized(name: str, *tensors: Any) -> None:
    for tensor in tensors:
        if type(tensor) is not QuantizedTensor:
            raise could_not_run(f"quantized::{name}", "CPU", "Meta", "QuantizedCPU")


def _check_quantized_input(name: str, tensor: Any) -> QuantizedTensor:
    _expect_quantized(name, tensor)
    return tensor


def _dequantize_numbers(x: QuantizedTensor) -> Tensor:
    return wrap(x._scheme.dequantize_fused(x._array))


def _requantized(x: Tensor, like: Any, scale: float, zero_point: int) -> Tensor:
    scheme = Scheme(like.dtype, float(scale), int(zero_point))
    return make_quantized(scheme.quantize(x._array, shift_last=True), scheme)


# ---- weights ------------------------------------------------------------------------------------


class PackedWeight:
    """A quantised weight with its bias, and the geometry if it is a convolution's."""

    def __init__(self, weight: QuantizedTensor, bias: Tensor | None, geometry: Any = None):
        self.weight, self.bias, self.geometry = weight, bias, geometry
        scheme = weight._scheme
        zero = scheme.factors(weight._array.ndim)[1]
        steps = weight._array.astype(np.float32) - zero
        self._steps = wrap(steps.astype(_exact_type(steps, geometry)))
        self._scale = np.asarray(scheme.scale, np.float32)

    def unpack(self) -> tuple[Tensor, Tensor | None]:
        """The weight and the bias."""
        return self.weight, self.bias

    def __reduce__(self) -> Any:
        return PackedWeight, (self.weight, self.bias, self.geometry)

    def products(self, x: QuantizedTensor) -> Tensor:
        """The product with `x`, in float32."""
        steps = wrap(x._array.astype(self._steps._array.dtype) - x._scheme.zero_point)
        scale = np.float32(x._scheme.scale) * self._scale
        if self.geometry is None:
            total = float_linear(steps, self._steps)._array
        else:
            total = self._convolved(steps)
            scale = scale.reshape(-1, *(1,) * (total.ndim - 2)) if scale.ndim else scale
        total = total.astype(np.float32) * scale
        if self.bias is not None:
            inner = 0 if self.geometry is None else total.ndim - 2
            total = total + self.bias._array.reshape(-1, *(1,) * inner)
        return wrap(total)

    def _convolved(self, steps: Tensor) -> np.ndarray:
        batched = steps._array.ndim == self._steps._array.ndim
        result = convolution(steps if batched else steps.unsqueeze(0), self._steps, None,
                             *self.geometry)._array
        return result if batched else result[0]


def _exact_type(steps: np.ndarray, geometry: Any) -> Any:
    """float32 if it holds every sum of products of such a weight with bytes, else float64."""
    outputs = steps.shape[1 if geometry is not None and geometry[3] else 0]
    terms = steps.size // max(outputs, 1)
    largest = float(np.abs(steps).max(initial=0)) * 255 * terms
    return np.float32 if largest < 2 ** 24 else np.float64


class PackedHalfWeight:
    """A float16 weight with its bias; products are those of float32."""

    def __init__(self, weight: Tensor, bias: Tensor | None):
        self.weight, self.bias = weight.to(flambeau.float16).float(), bias

    def unpack(self) -> tuple[Tensor, Tensor | None]:
        """The weight and the bias."""
        return self.weight, self.bias


def linear_prepack(weight: Tensor, bias: Tensor | None = None) -> PackedWeight:
    """What `linear` takes: a weight (out, in), quantised, and a bias."""
    return PackedWeight(_check_quantized_input("linear_prepack", weight),
                        bias if bias is None else bias.detach())


def linear_prepack_fp16(weight: Tensor, bias: Tensor | None = None) -> PackedHalfWeight:
    """What `linear_dynamic_fp16` takes."""
    return PackedHalfWeight(weight.detach(), bias if bias is None else bias.detach())


def linear_unpack(packed: Any) -> Any:
    """The weight and the bias."""
    return packed.unpack()


def _prepack(n: int, transposed: bool) -> Any:
    name = f"conv_transpose{n}d_prepack" if transposed else f"conv{n}d_prepack"

    def prepack(weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, *rest: Any
                ) -> PackedWeight:
        checked = _check_quantized_input(name, weight)
        output_padding, dilation, groups = rest if transposed else ((0,) * n, *rest)
        each = [numbers(v, n, "geometry") for v in (stride, padding, dilation)]
        return PackedWeight(checked, bias if bias is None else bias.detach(),
                            (*each, transposed, numbers(output_padding, n, "geometry"), groups))
    return _set_name(prepack, name,
                     "What the convolution takes: a weight, a bias and the geometry.")


def _set_name(function: Any, name: str, doc: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    globals()[name] = function
    return function


# ---- sums of products ----------------------------------------------------------------------------


def _declare_static(name: str, then: Callable[..., Tensor] | None) -> Any:
    def product(x: QuantizedTensor, packed: PackedWeight, scale: float, zero_point: int,
                *more: Any) -> Tensor:
        _expect_quantized(name, x)
        result = packed.products(x)
        return _requantized(then(result, *more) if then else result, x, scale, zero_point)
    return _set_name(product, name, "The product of a quantised tensor and a packed weight.")


def _declare_dynamic(name: str, then: Callable[..., Tensor] | None) -> Any:
    def product(x: Tensor, packed: PackedWeight, reduce_range: bool = False) -> Tensor:
        quantized = quantize_per_tensor_dynamic(x, flambeau.quint8, reduce_range)
        result = packed.products(quantized)
        return then(result) if then else result
    return _set_name(product, name,
                     "As without `_dynamic`, of a float tensor that is quantised first "
                     "to span its range; the result is float.")


def _declare_half(name: str, then: Callable[..., Tensor] | None) -> Any:
    def product(x: Tensor, packed: PackedHalfWeight) -> Tensor:
        result = float_linear(x, *packed.unpack())
        return then(result) if then else result
    return _set_name(product, name, "The product with a weight of float16.")


for _suffix, _then in (("", None), ("_relu", flambeau.relu)):
    _declare_static("linear" + _suffix, _then)
    _declare_dynamic(f"linear{_suffix}_dynamic", _then)
    _declare_half(f"linear{_suffix}_dynamic_fp16", _then)
    for _n in (1, 2, 3):
        _declare_static(f"conv{_n}d{_suffix}", _then)
_declare_static("linear_tanh", flambeau.tanh)
_declare_static("linear_leaky_relu", lambda x, slope: F.leaky_relu(x, slope))
for _n in (1, 2, 3):
    _declare_static(f"conv_transpose{_n}d", None)
    for _transposed in (False, True):
        _call = f"conv_transpose{_n}d" if _transposed else f"conv{_n}d"
        _declare_dynamic(_call + "_dynamic", None)
        _prepack(_n, _transposed)
        _set_name(lambda packed: packed.unpack(), _call + "_unpack", "The weight and the bias.")


def conv2d_add(x: QuantizedTensor, other: Tensor, packed: PackedWeight, scale: float,
               zero_point: int) -> Tensor:
    """`conv2d` plus another quantised tensor."""
    _expect_quantized("conv2d_add", x, other)
    return _requantized(packed.products(x) + dequantize(other), x, scale, zero_point)


def conv2d_add_relu(x: QuantizedTensor, other: Tensor, packed: PackedWeight, scale: float,
                    zero_point: int) -> Tensor:
    """The positive part of `conv2d` plus another quantised tensor."""
    _expect_quantized("conv2d_add_relu", x, other)
    return _requantized((packed.products(x) + dequantize(other)).relu(), x, scale, zero_point)


def matmul(a: QuantizedTensor, b: QuantizedTensor, scale: float, zero_point: int) -> Tensor:
    """The matrix product of two quantised tensors."""
    _expect_quantized("matmul", a, b)
    steps = [wrap(t._array.astype(np.float64) - t._scheme.zero_point) for t in (a, b)]
    factor = np.float32(a._scheme.scale) * np.float32(b._scheme.scale)
    total = flambeau.matmul(*steps)._array.astype(np.float32) * factor
    return _requantized(wrap(total), a, scale, zero_point)


# ---- element by element, and what follows from a float op ---------------------------------------


def _multiply(a: QuantizedTensor, b: QuantizedTensor, scale: float, zero_point: int) -> np.ndarray:
    product = (a._array.astype(np.float64) - a._scheme.zero_point) * (
        b._array.astype(np.float64) - b._scheme.zero_point)
    factor = np.float32(a._scheme.scale) * np.float32(b._scheme.scale) * np.float32(1 / scale)
    return np.rint(product.astype(np.float32) * factor) + zero_point


def _add(a: QuantizedTensor, b: QuantizedTensor, scale: float, zero_point: int) -> np.ndarray:
    return _requantized(_dequantize_numbers(a) + _dequantize_numbers(b), a, scale,
                        zero_point)._array


def _declare_combination(name: str, combine: Callable[..., np.ndarray],
                         scalar: Callable[..., Tensor], relu: bool) -> Any:
    def call(a: Any, b: Any, scale: float | None = None, zero_point: int | None = None) -> Tensor:
        if scale is None:
            return scalar(a, b, relu) if type(a) is QuantizedTensor else scalar(b, a, relu)
        _expect_quantized(name, a, b)
        zero = int(zero_point or 0)
        steps = np.clip(combine(a, b, scale, zero), *limits(a.dtype))
        return _rescaled(a, float(scale), zero, steps, relu)
    return _set_name(call, name,
                     "Two quantised tensors combined; or one with a number, which moves "
                     "the scale or the zero point.")


def _rescaled(x: QuantizedTensor, scale: float, zero_point: int, steps: np.ndarray,
              relu: bool) -> Tensor:
    if relu:
        steps = np.maximum(steps, zero_point)
    return make_quantized(steps.astype(x._array.dtype),
                          x._scheme._replace(scale=scale, zero_point=zero_point))


def _add_number(x: QuantizedTensor, number: Any, relu: bool) -> Tensor:
    scale, zero = x._scheme.scale, x._scheme.zero_point
    low, high = limits(x.dtype)
    moved = zero - int(np.rint(np.float64(number) / scale))
    if low <= moved <= high:
        return _rescaled(x, scale, moved, x._array, relu)
    end = low if moved < low else high
    stretched = abs((high if moved < low else low) - moved) / (high - low) * scale
    result = _dequantize_numbers(x) + number
    return _requantized(result.relu() if relu else result, x, stretched, end)


def _multiply_number(x: QuantizedTensor, number: Any, relu: bool) -> Tensor:
    scheme, number = x._scheme, float(number)
    if number == 0:
        return _rescaled(x, 1.0, 0, np.zeros_like(x._array), relu)
    if number > 0:
        return _rescaled(x, scheme.scale * number, scheme.zero_point, x._array, relu)
    ends = sum(limits(x.dtype))
    return _rescaled(x, scheme.scale * -number, ends - scheme.zero_point,
                     ends - x._array.astype(np.int64), relu)


for _name, _combine, _scalar in (("add", _add, _add_number),
                                 ("mul", _multiply, _multiply_number)):
    for _relu in (False, True):
        _suffix = "_relu" if _relu else ""
        _both = _declare_combination(_name + _suffix, _combine, _scalar, _relu)
        globals()[f"{_name}_scalar{_suffix}"] = _both


def _declare_concatenation(name: str, relu: bool) -> Any:
    def call(tensors: Any, dim: int, scale: float | None = None, zero_point: int | None = None
             ) -> Tensor:
        _expect_quantized(name, *tensors)
        first = tensors[0]._scheme
        result = flambeau.cat([dequantize(t) for t in tensors], dim)
        return quantize_per_tensor(result.relu() if relu else result,
                                   first.scale if scale is None else scale,
                                   first.zero_point if zero_point is None else zero_point,
                                   tensors[0].dtype)
    return _set_name(call, name, "Quantised tensors one after another, with one scale.")


_declare_concatenation("cat", False)
_declare_concatenation("cat_relu", True)


def _batch_norm(x: Tensor, weight: Any, bias: Any, mean: Tensor, var: Tensor, eps: float) -> Tensor:
    shape = (-1,) + (1,) * (x._array.ndim - 2)
    factor = (var + eps).rsqrt() if weight is None else weight / (var + eps).sqrt()
    offset = -mean * factor if bias is None else bias - mean * factor
    return x * factor.reshape(shape) + offset.reshape(shape)


def _declare_on_numbers(name: str, function: Callable[..., Tensor], doc: str,
                        at: int | None = None) -> Any:
    """A float op on quantised numbers; scale and zero point come last, or at place `at`."""
    def call(x: QuantizedTensor, *args: Any, **kwargs: Any) -> Tensor:
        _expect_quantized(name, x)
        scale, zero = kwargs.pop("output_scale", None), kwargs.pop("output_zero_point", None)
        rest = list(args)
        if scale is None:
            place = len(rest) - 2 if at is None else at
            scale, zero = rest[place], rest[place + 1]
            del rest[place:place + 2]
        elif zero is None:
            zero = rest.pop()
        with flambeau.no_grad():
            return _requantized(function(_dequantize_numbers(x), *rest, **kwargs), x, scale, zero)
    return _set_name(call, name, doc)


_AGAIN: dict[str, Any] = {
    "sigmoid": flambeau.sigmoid, "hardswish": lambda x: F.hardswish(x),
    "softmax": lambda x, dim: F.softmax(x, dim),
    "leaky_relu": lambda x, negative_slope=0.01, inplace=False: F.leaky_relu(x, negative_slope),
    "prelu": lambda x, weight: F.prelu(x, _dequantize_numbers(weight)),
    "layer_norm": lambda x, shape, weight, bias, eps=1e-5: F.layer_norm(
        x, shape, weight, bias, eps),
    "group_norm": lambda x, groups, weight, bias, eps=1e-5: F.group_norm(
        x, groups, weight, bias, eps),
    "instance_norm": lambda x, weight, bias, eps=1e-5: F.instance_norm(
        x, weight=weight, bias=bias, eps=eps)}
for _name, _function in _AGAIN.items():
    _declare_on_numbers(_name, _function, f"`{_name}` of a quantised tensor.")
_declare_on_numbers("elu", lambda x, alpha=1.0, scale=1.0, input_scale=1.0: scale * F.elu(
    x * input_scale, alpha), "`elu` of a quantised tensor.", at=0)
_declare_on_numbers("celu", lambda x, alpha=1.0: F.celu(x, alpha), "`celu` of a quantised tensor.",
                    at=0)
_declare_on_numbers("dropout", lambda x, p=0.5, training=False: F.dropout(x, p, training),
                    "`dropout` of a quantised tensor.", at=0)


def _batch_norm_of(kind: str, ranks: tuple[int, ...], message: str) -> None:
    def checked(x: Tensor, *args: Any) -> Tensor:
        if x._array.ndim not in ranks:
            raise RuntimeError(message)
        return _batch_norm(x, *args)
    _declare_on_numbers(f"batch_norm{kind}", checked, "(x - mean) / √(var + eps) · weight + bias.")
    _declare_on_numbers(f"batch_norm{kind}_relu", lambda *args: checked(*args).relu(),
                        "The positive part of `batch_norm`.")


_batch_norm_of("", (2, 3, 4, 5), "quantized::batch_norm only support 2d, 3d, 4d or 5d inputs.")
for _kind, _ranks in (("1d", (2, 3)), ("2d", (4,)), ("3d", (5,))):
    _batch_norm_of(_kind, _ranks, "Expecting the input tensor of rank "
                                  f"{' or '.join(map(str, _ranks))}.")


def _declare_same_scheme(name: str, function: Callable[..., Tensor]) -> Any:
    def call(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        _expect_quantized(name, x)
        return function(x, *args, **kwargs)
    return _set_name(call, name, f"`{name}` of a quantised tensor, quantised as that is.")


_declare_same_scheme("relu6", lambda x, inplace=False: x.copy_(F.relu6(x)) if inplace
                     else F.relu6(x))
_declare_same_scheme("clamp", lambda x, min=None, max=None: flambeau.clamp(x, min, max))
_declare_same_scheme("threshold", lambda x, threshold, value: _requantized(
    F.threshold(_dequantize_numbers(x), threshold, value), x, *x._scheme[1:3]))
_declare_same_scheme("max_pool1d", lambda x, *geometry: F.max_pool1d(x, *geometry))
_declare_same_scheme("max_pool2d", lambda x, *geometry: F.max_pool2d(x, *geometry))

# ---- embeddings ----------------------------------------------------------------------------------


class PackedEmbedding:
    """A table, quantised row by row."""

    def __init__(self, weight: QuantizedTensor):
        self.weight = weight
        self._table = dequantize(weight)
        if limits(weight.dtype)[1] == 15:           # with scales and offsets in half precision
            scale, zero = weight._scheme.factors(2)
            half, offset = (v.astype(np.float16).astype(np.float32)
                            for v in (scale, -zero * scale))
            self._table = wrap(weight._array * half + offset)

    def unpack(self) -> Tensor:
        """The table."""
        return self.weight

    def __reduce__(self) -> Any:
        return PackedEmbedding, (self.weight,)


def embedding_bag_prepack(weight: Tensor) -> PackedEmbedding:
    """What the embeddings take: a table, quantised row by row."""
    checked = _check_quantized_input("embedding_bag_prepack", weight)
    if weight.qscheme() is not flambeau.per_channel_affine_float_qparams:
        raise RuntimeError("Expect embedding_bag weights to be quantized using "
                           "kPerChannelAffineFloatQParams")
    return PackedEmbedding(checked)


def embedding_bag_unpack(packed: PackedEmbedding) -> Tensor:
    """The table."""
    return packed.unpack()


def embedding_byte(packed: PackedEmbedding, indices: Tensor, pruned_weights: bool = False
                   ) -> Tensor:
    """Rows of the table, as floats."""
    return packed._table[indices]


def embedding_bag_byte(packed: PackedEmbedding, indices: Tensor, offsets: Tensor | None = None,
                       scale_grad_by_freq: bool = False, mode: int = 0,
                       pruned_weights: bool = False, per_sample_weights: Tensor | None = None,
                       compressed_indices_mapping: Any = None, include_last_offset: bool = False
                       ) -> Tensor:
    """Sums of rows of the table, bag by bag."""
    return F.embedding_bag(indices, packed._table, offsets, mode="sum",
                           per_sample_weights=per_sample_weights,
                           include_last_offset=include_last_offset)


embedding_4bit, embedding_bag_4bit = embedding_byte, embedding_bag_byte

# ---- recurrent networks --------------------------------------------------------------------------


def _dynamic_linear(x: Tensor, packed: Any, bias: Any = None) -> Tensor:
    if isinstance(packed, PackedHalfWeight):
        return globals()["linear_dynamic_fp16"](x, packed)
    return globals()["linear_dynamic"](x, packed, True)


def dynamic_cell(mode: str, input: Tensor, hx: Any, w_ih: Any, w_hh: Any) -> Any:
    """One step of a recurrent cell with packed weights; the state is a tuple."""
    return recurrent.recurrence(mode).step(_dynamic_linear(input, w_ih), hx, w_hh, None,
                                           product=_dynamic_linear)


def dynamic_network(mode: str, input: Tensor, hx: Any, params: Any, layers: int, dropout: float,
                    train: bool, bidirectional: bool, sizes: Any = None) -> Any:
    """A stack of recurrent layers over (t, n, k) with packed weights, two for each layer."""
    weights = [w for pair in params for w in (*pair, None, None)]
    return recurrent.stacked(recurrent.recurrence(mode), input, hx, weights, True, layers, dropout,
                             train, bidirectional, sizes, product=_dynamic_linear)


def _cell(mode: str) -> Any:
    def cell(input: Tensor, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None
             ) -> Any:
        if mode == "lstm":
            return dynamic_cell(mode, input, tuple(hx), w_ih, w_hh)
        return dynamic_cell(mode, input, (hx,), w_ih, w_hh)[0]
    return _set_name(cell, f"quantized_{mode}_cell_dynamic",
                     "One step with packed weights, which hold the biases.")


for _mode in ("lstm", "gru", "rnn_tanh", "rnn_relu"):
    _cell(_mode)

for _value in [*globals().values()]:            # the namespace is what programs and graphs name
    if getattr(_value, "__module__", "") == __name__:
        _value.__module__ = "flambeau.ops.quantized"
