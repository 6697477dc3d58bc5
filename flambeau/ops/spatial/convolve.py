"""Convolutions in one, two and three dimensions, transposed ones, and unfolding into columns.

One bilinear op does all: `convolution`. Its gradients in the image and in the weight are bilinear
ops again, whose own gradients are convolutions: so derivatives of all orders exist. Under vmap a
batched image joins the batch; batched weights become groups.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._support.settings import warn_once
from flambeau.core.op import public
from flambeau.core.promotion import in_single
from flambeau.core.tensor import Tensor
from flambeau.dispatch.declaration import op
from flambeau.kernels.declaration import checked, is_narrow
from flambeau.kernels.dtypes import float_astype
from flambeau.kernels.moving.layouts import (
    channels_last,
    convolves_channels_last,
    has_channels_last,
)
from flambeau.kernels.network import convolution as kernels
from flambeau.kernels.refused import characters
from flambeau.ops.linalg.matmul import conj
from flambeau.ops.node_names import one_node
from flambeau.ops.spatial.convolution_checks import (
    check_bias,
    check_dimensions,
    check_geometry,
    numbers,
    stored_bias,
)
from flambeau.ops.view.copying import channels_swapped, in_layout_of_factors
from flambeau.ops.view.reshaping import reshape
from flambeau.ops.view.shape import batch_first, movedim

# ---- the three bilinear ops ----------------------------------------------------------------------


def _convolution_kernel(input: np.ndarray, weight: np.ndarray, bias: np.ndarray | None, stride: Any,
                        padding: Any, dilation: Any, transposed: bool, output_padding: Any,
                        groups: int) -> np.ndarray:
    if input.dtype.kind == "W":
        return in_single(_convolution_kernel)(input, weight, bias, stride, padding, dilation,
                                              transposed,
                                     output_padding, groups)
    stepwise = transposed and kernels.rounds_intermediates(input.dtype, output_padding, stride)
    if bias is not None and is_narrow(input.dtype) and not stepwise:    # rounded once, at the end
        x, w, b = (float_astype(a, np.float32) for a in (input, weight, bias))
        result = float_astype(_convolution_kernel(x, w, b, stride, padding, dilation, transposed,
                                                  output_padding, groups), input.dtype)
        return result if convolves_channels_last(input) else np.ascontiguousarray(result)
    result = kernels.convolution(input, weight, stride, padding, dilation, transposed,
                                 output_padding, groups)
    if bias is not None:
        result += bias.reshape(-1, *(1,) * (input.ndim - 2))
    return channels_last(result) if convolves_channels_last(input) and (
        has_channels_last(input) or has_channels_last(weight)) else result


def _batch_to_groups(size: int, dims: Any, *tensors: Tensor) -> list[Tensor]:
    """Batched tensors with the batch joined to the channels (dimension 1), for groups."""
    joined = []
    for tensor, dim in zip(tensors, dims):
        t = movedim(batch_first(tensor, dim, size), 0, 1)
        shape = t._array.shape
        joined.append(reshape(t, (shape[0], size * shape[2], *shape[3:])))
    return joined


def _join_batch(size: int, tensor: Tensor, dim: Any) -> Tensor:
    """The batch joined to dimension 0."""
    t = batch_first(tensor, dim, size)
    shape = t._array.shape
    return reshape(t, (size * shape[1], *shape[2:]))


def _split_batch(size: int, tensor: Tensor, at: int) -> Tensor:
    """Dimension `at` taken apart into the batch and the rest."""
    shape = tensor._array.shape
    return reshape(tensor, (*shape[:at], size, shape[at] // size, *shape[at + 1:]))


def _convolution_batched(size: int, dims: Any, input: Tensor, weight: Tensor, bias: Any,
                         *geometry: Any) -> Any:
    if dims[1] is None and (bias is None or dims[2] is None):
        flat = _join_batch(size, input, dims[0])
        return _split_batch(size, convolution(flat, weight, bias, *geometry), 0), 0
    (x,) = _batch_to_groups(size, dims, input)
    w = _join_batch(size, weight, dims[1])
    b = None if bias is None else reshape(batch_first(bias, dims[2], size), (-1,))
    result = convolution(x, w, b, *geometry[:-1], geometry[-1] * size)
    return _split_batch(size, result, 1), 1


_GEOMETRY = ("SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, "
             "SymInt[] output_padding, SymInt groups")


def _prepare_convolution(input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any,
                         padding: Any,
                         dilation: Any, transposed: bool, output_padding: Any, groups: int
                         ) -> tuple[Any, ...]:
    if weight._array.ndim < 3:
        raise RuntimeError("weight should have at least three dimensions")
    n = input._array.ndim - 2
    stride, dilation = numbers(stride, n, "stride"), numbers(dilation, n, "dilation")
    geometry = check_geometry(input, weight, bias, stride, numbers(padding, n, "padding"), dilation,
                              bool(transposed), numbers(output_padding, n, "output_padding"),
                              groups)
    if bias is not None and bias._array.dtype != input._array.dtype:
        bias = stored_bias(input, weight, bias, bool(transposed), stride, dilation, groups)
    return (input, weight, bias, *geometry)


def _kernel_name(self: np.ndarray, weight: Any, bias: Any, stride: Any, padding: Any,
                 dilation: Any, transposed: bool, *rest: Any) -> str:
    """What PyTorch calls the kernel of a convolution of such elements."""
    n = max(self.ndim - 2, 2)
    if transposed:
        return f"slow_conv_transpose{n}d_out_cpu"
    if any(d != 1 for d in dilation):
        return "slow_conv_dilated<>"
    if self.dtype.char in characters("Bi"):
        return ""
    moved = any(k != 1 for k in (*weight.shape[2:], *stride)) or any(padding)
    return "compute_columns3d" if n == 3 and moved else f"slow_conv{n}d_cpu"


@op("convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, "
    f"{_GEOMETRY}, bool[3] output_mask) -> (Tensor, Tensor, Tensor)", explicit=True, out=False,
    function=False, method=False)
@one_node(name="ConvolutionBackwardBackward0", inputs="grad_output input weight")
def convolution_backward(grad_output: Tensor, input: Tensor, weight: Tensor, bias_sizes: Any,
                         stride: Any, padding: Any, dilation: Any, transposed: bool,
                         output_padding: Any, groups: int, output_mask: Any) -> tuple[Any, ...]:
    """The gradients of `convolution`, of those arguments that `output_mask` names."""
    n = input._array.ndim - 2
    geometry = (numbers(stride, n, "stride"), numbers(padding, n, "padding"),
                numbers(dilation, n, "dilation"), transposed,
                numbers(output_padding, n, "output_padding"), groups)
    by_input, by_weight, by_bias = output_mask
    def like_factors(gradient: Any, factor: Tensor, of: Tensor) -> Tensor:
        found = gradient(grad_output, conj(factor), of._array.shape, *geometry)
        return in_layout_of_factors(found, input, weight)
    return (
        like_factors(convolution_input_grad, weight, input) if by_input else None,
        like_factors(convolution_weight_grad, input, weight) if by_weight else None,
        grad_output.sum((0, *range(2, grad_output._array.ndim))) if by_bias else None)


@op("_convolution_double_backward(Tensor? ggI, Tensor? ggW, Tensor? ggb, Tensor gO, Tensor weight, "
    f"Tensor self, {_GEOMETRY}, bool[3] output_mask) -> (Tensor, Tensor, Tensor)", out=False,
    function=False, method=False)
def _convolution_double_backward(ggI: Tensor | None, ggW: Tensor | None, ggb: Tensor | None,
                                 gO: Tensor, weight: Tensor, self: Tensor, *rest: Any
                                 ) -> tuple[Any, ...]:
    """The gradients of what `convolution_backward` gives, by `grad_output`, input and weight."""
    *geometry, (by_grad, by_input, by_weight) = rest
    seen = None
    for image, kernel in ((ggI, weight), (self, ggW)) if by_grad else ():
        if image is not None and kernel is not None:
            part = convolution(image, kernel, None, *geometry)
            seen = part if seen is None else seen + part
    if by_grad and ggb is not None:
        added = ggb.reshape(-1, *(1,) * (gO._array.ndim - 2))
        seen = added.expand(gO.shape) if seen is None else seen + added

    def backward(image: Tensor, kernel: Tensor, place: int) -> Any:
        return convolution_backward(gO, image, kernel, None, *geometry,
                                    [place == 0, place == 1, False])[place]
    return (seen, backward(self, ggW, 0) if by_input and ggW is not None else None,
            backward(ggI, weight, 1) if by_weight and ggI is not None else None)


def _convolution_vjp(grad: Tensor, needs: Any, input: Tensor, weight: Tensor, bias_shape: Any,
                     stride: Any, padding: Any, dilation: Any, transposed: bool,
                     output_padding: Any, groups: int) -> Any:
    return convolution_backward(
        grad, input, weight, bias_shape or (0,), stride, padding, dilation, transposed,
        output_padding, groups, [needs[0], needs[1], needs[2] and bias_shape != ()])


convolution = op(
    f"convolution(Tensor input, Tensor weight, Tensor? bias, {_GEOMETRY}) -> Tensor",
    kernel=_convolution_kernel, checked_kernel=checked("convolution"),
    canonical=_prepare_convolution, method=False,
    out=False, refuses=(_kernel_name, "bBiU8"), vjp=_convolution_vjp, batch=_convolution_batched,
    jvp=lambda input, weight, bias, input_t, weight_t, bias_t, stride, padding, dilation,
    transposed, output_padding, groups: (
        convolution(input_t, weight, bias_t, stride, padding, dilation, transposed,
                    output_padding, groups)
        + convolution(input, weight_t, None, stride, padding, dilation, transposed,
                      output_padding, groups)),
    shape=lambda input, weight, bias, *geometry: kernels.output_shape(
        input._array.shape, weight._array.shape, *geometry),
    doc="""The general convolution: `input` (n, c, ...) with `weight` (o, c / groups, ...), or with
    (c, o / groups, ...) if `transposed`, and `bias` (o).""")


def _input_grad_batched(size: int, dims: Any, grad: Tensor, weight: Tensor, shape: Any,
                        *geometry: Any) -> Any:
    if dims[1] is None:
        flat = convolution_input_grad(_join_batch(size, grad, dims[0]), weight,
                                      (size * shape[0], *shape[1:]), *geometry)
        return _split_batch(size, flat, 0), 0
    (g,) = _batch_to_groups(size, dims, grad)
    result = convolution_input_grad(g, _join_batch(size, weight, dims[1]),
                                    (shape[0], size * shape[1], *shape[2:]), *geometry[:-1],
                                    geometry[-1] * size)
    return _split_batch(size, result, 1), 1


def _gradient_op(name: str, other: str, kernel: Any, batch: Any, by_self: Any, by_other: Any,
                 doc: str) -> Any:
    """A gradient of `convolution`: linear in that of the result, and in the `other` factor."""
    return op(
        f"{name}(Tensor self, Tensor {other}, int[] shape, {_GEOMETRY}) -> Tensor",
        kernel=in_single(kernel), kind="multilinear", batch=batch, function=False, method=False,
        out=False, shape=lambda self, factor, shape, *geometry: shape, doc=doc,
        **{"d_self": by_self, f"d_{other}": by_other})


def _weight_grad_output_sizes(image: Tensor, by: Tensor, stride: Any, padding: Any,
                              dilation: Any) -> list[int]:
    """The sizes of the convolution of `image` by `by` that gives a gradient by the weight."""
    return [(n + 2 * p - s * (m - 1) - 1) // d + 1 for n, m, s, p, d in zip(
        image._array.shape[2:], by._array.shape[2:], stride, padding, dilation)]


convolution_input_grad = _gradient_op(
    "convolution_input_grad", "weight", kernels.convolution_input_grad, _input_grad_batched,
    lambda grad, weight, stride, padding, dilation, transposed, output_padding, groups:
    convolution(grad, conj(weight), None, stride, padding, dilation, transposed, output_padding,
                groups),
    lambda grad, self, weight_shape, stride, padding, dilation, transposed, output_padding, groups:
    channels_swapped(
        convolution_weight_grad(conj(self), grad, weight_shape, stride, padding, dilation,
                                transposed, output_padding, groups),
        _weight_grad_output_sizes(*((self, grad) if transposed else (grad, self)), stride, padding,
                                  dilation)),
    "The gradient of `convolution` in its input, for the gradient of its result.")


def _weight_grad_batched(size: int, dims: Any, grad: Tensor, input: Tensor, shape: Any,
                         *geometry: Any) -> Any:
    g, x = _batch_to_groups(size, dims, grad, input)
    result = convolution_weight_grad(g, x, (size * shape[0], *shape[1:]), *geometry[:-1],
                                     geometry[-1] * size)
    return _split_batch(size, result, 0), 0


convolution_weight_grad = _gradient_op(
    "convolution_weight_grad", "image", kernels.convolution_weight_grad, _weight_grad_batched,
    lambda grad, image, stride, padding, dilation, transposed, output_padding, groups:
    convolution(conj(image), grad, None, stride, padding, dilation, transposed, output_padding,
                groups),
    lambda grad, self, image_shape, stride, padding, dilation, transposed, output_padding, groups:
    convolution_input_grad(conj(self), grad, image_shape, stride, padding, dilation, transposed,
                           output_padding, groups),
    "The gradient of `convolution` in its weight, for the gradient of its result.")


# ---- what users call -----------------------------------------------------------------------------


def _same_padding(input: Tensor, kernel: Any, stride: Any, dilation: Any) -> Any:
    """Padding that keeps the size; what two equal sides can't do is added to `input` in front."""
    if any(s != 1 for s in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    total = [d * (k - 1) for k, d in zip(kernel, dilation)]
    if any(t % 2 for t in total):
        warn_once("Using padding='same' with even kernel lengths and odd dilation may require a "
                  "zero-padded copy of the input be created")
        extra = [each for t in reversed(total) for each in (0, t % 2)]
        from flambeau.ops.spatial.padding import constant_pad_nd
        input = constant_pad_nd(input, extra)
    return input, tuple([t // 2 for t in total])


def _declare_convolution(n: int, doc: str) -> Any:
    name, all_zero = f"conv{n}d", (0,) * n
    given = f"Tensor input, Tensor weight, Tensor? bias=None, SymInt[{n}] stride=1, "
    rest = f"SymInt[{n}] dilation=1, SymInt groups=1) -> Tensor"

    def conv(input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any,
             dilation: Any, groups: int) -> Tensor:
        if type(padding) is not str:
            check_bias(input, bias)
        rank = input._array.ndim
        if rank != n + 2:
            input = _batched(input, n, name)
        if type(padding) is str:
            input, padding = _named_padding(
                padding, input, weight, numbers(stride, n, "stride"),
                numbers(dilation, n, "dilation"))
        result = convolution(input, weight, bias, stride, padding, dilation, False, all_zero,
                             groups)
        return result if rank == n + 2 else result.squeeze(0)

    return _publish(n, op(
        f"{name}({given}SymInt[{n}] padding=0, {rest}",
        f"{name}.padding({given}str padding=\"valid\", {rest}", body=conv, out=False, method=False,
        autocast="lower", doc=doc))


def _transposed_convolver(n: int, doc: str) -> Any:
    name = f"conv_transpose{n}d"

    def conv(input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any,
             output_padding: Any, groups: int, dilation: Any) -> Tensor:
        rank = input._array.ndim
        if rank != n + 2:
            input = _batched(input, n, name)
        result = convolution(input, weight, bias, stride, padding, dilation, True, output_padding,
                             groups)
        return result if rank == n + 2 else result.squeeze(0)

    return _publish(n, op(
        f"{name}{'.input' * (n > 1)}(Tensor input, Tensor weight, Tensor? bias=None, "
        f"SymInt[{n}] stride=1, SymInt[{n}] padding=0, SymInt[{n}] output_padding=0, "
        f"SymInt groups=1, SymInt[{n}] dilation=1) -> Tensor", body=conv, out=False, method=False,
        autocast="lower", doc=doc))


def _publish(n: int, function: Any) -> Any:
    public.setdefault("nn.functional", {})[function.__name__] = function
    return function


def _batched(input: Tensor, n: int, name: str) -> Tensor:
    """The input, which has no batch, as one of one sample."""
    if input._array.ndim != n + 1:
        raise RuntimeError(f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {name}, "
                           f"but got input of size: {list(input._array.shape)}")
    return input.unsqueeze(0)


def _named_padding(padding: str, input: Tensor, weight: Tensor, stride: Any, dilation: Any) -> Any:
    """The input and how much it is padded, for "valid" and "same"."""
    if padding == "valid":
        return input, (0,) * len(stride)
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    check_dimensions(input._array, weight._array, space="")
    return _same_padding(input, weight._array.shape[2:], stride, dilation)


conv1d = _declare_convolution(1, """Cross-correlation over one dimension.

    y_o[t] = b_o + Σ w_oi[k] x_i[stride · t + dilation · k - padding].

    `input` (n, c, l) or (c, l), `weight` (o, c / groups, k); `padding` may be "same" or "valid".

    >>> import flambeau
    >>> flambeau.conv1d(flambeau.ones(1, 1, 4), flambeau.ones(1, 1, 2))
    tensor([[[2., 2., 2.]]])
    """)
conv2d = _declare_convolution(2, """Cross-correlation over two dimensions; see `conv1d`.

    >>> import flambeau
    >>> flambeau.conv2d(flambeau.ones(1, 1, 5, 5), flambeau.ones(2, 1, 3, 3), padding=1).shape
    torch.Size([1, 2, 5, 5])
    """)
conv3d = _declare_convolution(3, "Cross-correlation over three dimensions; see `conv1d`.")
conv_transpose1d = _transposed_convolver(
    1, """The transpose of `conv1d` as a linear map: `weight` is (c, o / groups, k); the length is
    (l - 1) · stride - 2 · padding + dilation · (k - 1) + output_padding + 1.""")
conv_transpose2d = _transposed_convolver(2, "The transpose of `conv2d`; see `conv_transpose1d`.")
conv_transpose3d = _transposed_convolver(3, "The transpose of `conv3d`; see `conv_transpose1d`.")


@op("conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor", method=False,
    out=False, explicit=True, autocast="lower")
@one_node
def conv_tbc(self: Tensor, weight: Tensor, bias: Tensor, pad: int) -> Tensor:
    """`conv1d` of (time, batch, channels) with weights (k, c, o)."""
    if self._array.ndim != 3:
        raise RuntimeError("Input must have 3 dims: time, batch, in_channel")
    result = conv1d(self.permute(1, 2, 0), weight.permute(2, 1, 0), bias, 1, pad)
    return result.permute(2, 0, 1)


public["nn.functional"]["conv_tbc"] = conv_tbc

__all__ = ["conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
           "convolution"]
