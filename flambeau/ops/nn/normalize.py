"""Normalisations: (x - mean) / sqrt(variance + eps) · weight + bias, over various dimensions."""
from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

import flambeau
from flambeau._support.settings import warn_once
from flambeau.core.autograd.grad_mode import no_grad
from flambeau.core.op import public
from flambeau.core.promotion import c_name, is_half, join, type_name
from flambeau.core.tensor import Tensor
from flambeau.dispatch.declaration import op
from flambeau.dispatch.python_functions import python_function
from flambeau.kernels.declaration import checked, is_narrow
from flambeau.kernels.moving.layouts import channels_last, has_channels_last, preserve_channels_last
from flambeau.kernels.network import normalization as kernels
from flambeau.kernels.refused import refuse
from flambeau.ops.linalg.support import with_gradient_by_rows
from flambeau.ops.node_names import with_number
from flambeau.ops.view.conversion import cast
from flambeau.ops.view.shape import movedim

NETWORK = "nn.functional"
THREE = "-> (Tensor, Tensor, Tensor)"
INNER: dict[str, Any] = {"function": False, "method": False, "out": False}


def image_kernel(kernel: Any) -> Any:
    """The kernel, whose first result has the channels last if the first argument has."""
    def run(input: np.ndarray, *rest: Any) -> Any:
        y, mean, rstd = kernel(input, *rest)
        if has_channels_last(input):
            y = channels_last(y)
        elif not y.flags.c_contiguous:
            y = np.ascontiguousarray(y)
        return y, mean, rstd
    return run


def standardized(input: Tensor, dims: tuple[int, ...], eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """(x - mean) / sqrt(variance + eps) over `dims`, with the mean and the (biased) variance."""
    input = as_image(input)
    mean = input.mean(dims, True)
    centered = input - mean
    variance = (centered * centered).mean(dims, True)
    return centered * flambeau.rsqrt(variance + eps), mean, variance


def as_image(input: Tensor) -> Tensor:
    """An image with the channels last as it is, all else by rows: so the kernels' results lie."""
    return input if has_channels_last(input._array) else input.contiguous()


def affine(x: Tensor, weight: Tensor | None, bias: Tensor | None, shape: Any = None) -> Tensor:
    """x · weight + bias, both seen with `shape`."""
    for parameter, apply in ((weight, flambeau.mul), (bias, flambeau.add)):
        if parameter is not None:
            x = apply(x, parameter if shape is None else parameter.reshape(shape))
    return x


def same_types(input: Tensor, *parameters: Tensor | None) -> None:
    """Parameters have the input's type, or all float32 for a narrow input."""
    own = input._array.dtype
    for p in parameters:
        if p is not None and p._array.dtype is not own and p._array.dtype != own:
            _check_mixed(input, [p.dtype for p in parameters if p is not None])
            return


def _check_mixed(input: Tensor, found: list[Any]) -> None:
    if found[0] is input.dtype:         # then PyTorch's kernels find out
        other = next(dtype for dtype in found if dtype is not input.dtype)
        raise RuntimeError(f"expected scalar type {type_name(input.dtype)} but found "
                           f"{type_name(other)}")
    if any(dtype is not flambeau.float32 for dtype in found):
        raise RuntimeError("mixed dtype (CPU): expect parameter to have scalar type of Float")
    if not is_narrow(input._array.dtype):
        raise RuntimeError("mixed dtype (CPU): all inputs must share same datatype.")


def recomputed(input: Tensor, dims: tuple[int, ...], rstd: Tensor) -> tuple[Tensor, Tensor]:
    """(x - mean) / std over `dims` and 1 / std as functions of `input`, of which `rstd` says the
    value, and so what was added to the variance."""
    wide = input if input._array.dtype == rstd._array.dtype else input.to(rstd.dtype)
    centered = wide - wide.mean(dims, True)
    variance = (centered * centered).mean(dims, True)
    added = rstd.detach().pow(-2) - variance.detach()
    scale = flambeau.rsqrt(variance + added)
    return centered * scale, scale


def input_gradient(grad: Tensor, z: Tensor, scale: Tensor, dims: tuple[int, ...]) -> Tensor:
    """The gradient of (x - mean) / std, given that of the result."""
    return scale * (grad - grad.mean(dims, True) - z * (grad * z).mean(dims, True))


def wanted_gradients(needs: Any, *given: Any) -> list[bool]:
    """Which gradients of a layer, its weight and its bias are wanted."""
    return [needed and tensor is not None for needed, tensor in zip(needs, given)]


def masked(found: Any, mask: Any) -> tuple[Any, ...]:
    return tuple([each if wanted else None for each, wanted in zip(found, mask)])


# ---- layer norm and rms norm ---------------------------------------------------------------------


def _check_normalized(input: Tensor, shape: Any, weight: Any, bias: Any, name: str) -> int:
    """How many dimensions are normalised over."""
    shape, own = tuple(shape), input._array.shape
    if not shape:
        raise RuntimeError("Expected normalized_shape to be at least 1-dimensional, i.e., "
                           "containing at least one element, but got normalized_shape = "
                           f"{list(shape)}")
    for what, p in (("weight", weight), ("bias", bias)):
        if p is not None and p._array.shape != shape:
            raise RuntimeError(f"Expected {what} to be of same shape as normalized_shape, but got "
                               f"{what} of shape {list(p._array.shape)} and normalized_shape = "
                               f"{list(shape)}")
    if len(own) < len(shape) and name == "rms_norm":
        raise ValueError(f"Input tensor must have at least {len(shape)} dimensions, but got "
                         f"{len(own)}")
    if own[len(own) - len(shape):] != shape:
        stars = f"*{', ' if name == 'layer_norm' else ''}" + ", ".join(map(str, shape))
        raise RuntimeError(f"Given normalized_shape={list(shape)}, expected input with shape "
                           f"[{stars}], but got input of size{list(own)}")
    return len(shape)


def _prepare_layer_norm(input: Tensor, weight: Any, bias: Any, shape: Any, eps: float
                        ) -> tuple[Any, ...]:
    same_types(input, weight, bias)
    _check_normalized(input, shape, weight, bias, "layer_norm")
    refuse(input._array, "bBilUcW8", "LayerNormKernelImpl")
    return input, weight, bias, tuple(shape), eps


def _layer_norm_parts(input: Tensor, weight: Any, bias: Any, shape: Any, eps: float
                      ) -> tuple[Tensor, Tensor, Tensor]:
    y, mean, variance = standardized(input.contiguous(), tuple(range(-len(shape), 0)), eps)
    with no_grad():
        rstd = flambeau.rsqrt(variance + eps)
    return affine(y, weight, bias), mean.detach(), rstd.detach()


def _layer_norm_gradients_parts(grad: Tensor, input: Tensor, mean: Tensor, rstd: Tensor,
                                weight: Any, shape: Any) -> tuple[Tensor, Tensor, Tensor]:
    rank, n = input._array.ndim, len(shape)
    last = tuple(range(-n, 0))
    z, scale = recomputed(with_gradient_by_rows(input), last, rstd)
    by_z = grad if weight is None else grad * weight
    by_weight, by_bias, own = grad * z, grad, grad.dtype if weight is None else weight.dtype
    if rank > n:
        lead = tuple(range(rank - n))
        by_weight, by_bias = by_weight.sum(lead), by_bias.sum(lead)
    return input_gradient(by_z, z, scale, last).to(input.dtype), by_weight.to(own), by_bias.to(own)


_layer_norm_gradients = op(
    "_layer_norm_gradients(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, "
    "Tensor? weight, SymInt[] normalized_shape) -> (Tensor, Tensor, Tensor)",
    kernel=lambda grad, input, mean, rstd, weight, shape: kernels.layer_norm_backward(
        grad, input, len(shape), mean, rstd, weight),
    parts=_layer_norm_gradients_parts, nondiff="mean rstd", **INNER,
    node="NativeLayerNormBackwardBackward0")


@op("native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, "
    "Tensor mean, Tensor rstd, Tensor? weight, Tensor? bias, bool[3] output_mask) "
    f"{THREE}", explicit=True, **INNER)
def native_layer_norm_backward(grad_out: Tensor, input: Tensor, normalized_shape: Any, mean: Tensor,
                               rstd: Tensor, weight: Any, bias: Any, output_mask: Any
                               ) -> tuple[Any, ...]:
    """The gradients of `native_layer_norm`, of those arguments that `output_mask` names."""
    return masked(_layer_norm_gradients(grad_out, input, mean, rstd, weight, normalized_shape),
                   output_mask)


def _layer_norm_batched(size: int, dims: Any, input: Tensor, weight: Any, bias: Any, shape: Any,
                        eps: float) -> Any:
    """One more of the dimensions that are not normalised, where all slices are scaled alike."""
    if any(d is not None for d in dims[1:]):
        return NotImplemented
    return native_layer_norm(movedim(input, dims[0], 0), shape, weight, bias, eps), [0, 0, 0]


native_layer_norm = op(
    "native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, "
    f"float eps) {THREE}",
    kernel=lambda input, weight, bias, shape, eps: kernels.layer_norm(
        input, len(shape), weight, bias, eps),
    checked_kernel=checked("layer_norm"), canonical=_prepare_layer_norm, parts=_layer_norm_parts,
    batch=_layer_norm_batched,
    vjp=lambda grad, needs, input, weight, bias, normalized_shape, result1, result2:
    native_layer_norm_backward(grad[0], input, normalized_shape, result1, result2, weight, bias,
                               wanted_gradients(needs, input, weight, bias)),
    differentiable=(True, False, False), out=False, method=False,
    doc="`layer_norm` with the mean and 1 / sqrt(variance + eps) that it used.")

layer_norm_op = op(
    "layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, "
    "float eps=1e-05, bool cudnn_enable=True) -> Tensor",
    body=lambda input, normalized_shape, weight, bias, eps, *_: native_layer_norm(
        input, normalized_shape, weight, bias, eps)[0], out=False, method=False,
    doc="""The last dimensions, `normalized_shape`, normalised for each index of the others.

    Ba, Kiros and Hinton, Layer normalization, 2016.

    >>> import flambeau
    >>> flambeau.layer_norm(flambeau.tensor([[1.0, 2.0, 3.0]]), (3,))
    tensor([[-1.2247,  0.0000,  1.2247]])
    """)


@python_function(namespace=NETWORK)
def layer_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = None,
               bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    """The last dimensions, `normalized_shape`, normalised; see `torch.layer_norm`."""
    return layer_norm_op(input, normalized_shape, weight, bias, eps, False)


def _rms_eps(input: Tensor, eps: float | None) -> float:
    """The default is the machine epsilon of the type that is computed in."""
    own = input._array.dtype
    wide = np.dtype(np.float32) if is_narrow(own) else own
    return float(np.finfo(wide).eps) if eps is None else eps


def _rms_norm_parts(input: Tensor, weight: Any, dims: int, eps: float) -> tuple[Tensor, None]:
    own = input._array.dtype
    x = cast(input, np.float32) if is_half(own) else as_image(input)    # rounded at the end alone
    y = x * flambeau.rsqrt(_plus_in_place(x.pow(2).mean(tuple(range(-dims, 0)), True), eps))
    y = y if weight is None else y * weight
    return (cast(y, own) if is_half(own) else y), None


_plus_in_place = with_number(Tensor.add_, "AddBackward1")
_rms_norm = op(
    "_rms_norm(Tensor input, Tensor? weight, int dims, float eps) -> (Tensor result, Tensor rrms)",
    kernel=preserve_channels_last(lambda input, weight, dims, eps: kernels.rms_norm(
        input, dims, weight, eps)), parts=_rms_norm_parts, implicit=True,
    backward=lambda grad, input, weight, rrms, dims: kernels.rms_norm_backward(
        grad, input, dims, rrms, weight),
    differentiable=(True, False), returns=tuple, function=False, method=False, out=False,
    node="MulBackward0")


@op("rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> "
    "Tensor", out=False, method=False)
def rms_norm_op(input: Tensor, normalized_shape: Any, weight: Tensor | None, eps: float | None
                ) -> Tensor:
    """x / sqrt(mean of x² + eps) · weight over the last dimensions, `normalized_shape`.

    Zhang and Sennrich, Root mean square layer normalization, NeurIPS 2019.
    """
    dims = _check_normalized(input, normalized_shape, weight, None, "rms_norm")
    refuse(input._array, "bBilUW8", "rms_norm")
    own, eps = input.dtype, _rms_eps(input, eps)
    if weight is not None and weight._array.dtype != input._array.dtype:
        warn_once("Mismatch dtype between input and weight: input dtype = "
                  f"{c_name(input.dtype)}, weight dtype = {c_name(weight.dtype)}, Cannot dispatch "
                  "to fused implementation.")
        if not is_narrow(input._array.dtype):
            common = join(input.dtype, weight.dtype)
            input, weight = input.to(common), weight.to(common)
    if input._array.dtype.kind in "cW":
        result, _ = _rms_norm_parts(input, weight, dims, eps)
    else:
        result = _rms_norm(input, weight, dims, eps)[0]
    return result if result.dtype is own else result.to(own)


@python_function(namespace=NETWORK)
def rms_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = None,
             eps: float | None = None) -> Tensor:
    """x / sqrt(mean of x² + eps) · weight over the last dimensions; see `torch.rms_norm`."""
    return rms_norm_op(input, normalized_shape, weight, eps)


# ---- group norm ----------------------------------------------------------------------------------


def _group_norm_parts(input: Tensor, weight: Any, bias: Any, n: int, c: int, area: int, group: int,
                      eps: float) -> tuple[Tensor, Tensor, Tensor]:
    shape = input._array.shape
    y, mean, variance = standardized(input.reshape(n, group, c * area // group), (2,), eps)
    result = affine(y.reshape(shape), weight, bias, (-1, *(1,) * (len(shape) - 2)))
    return result, mean.squeeze(2), flambeau.rsqrt(variance + eps).squeeze(2)


def _group_norm_gradients_parts(grad: Tensor, input: Tensor, mean: Tensor, rstd: Tensor,
                                weight: Any, group: int) -> tuple[Tensor, Tensor, Tensor]:
    shape, own = input._array.shape, grad.dtype if weight is None else weight.dtype
    parts = (shape[0], group, prod(shape[1:]) // group)
    z, scale = recomputed(input.reshape(parts), (2,), rstd.unsqueeze(2))
    by_z = grad if weight is None else grad * weight.reshape(-1, *(1,) * (len(shape) - 2))
    by_input = input_gradient(by_z.reshape(parts), z, scale, (2,)).reshape(shape)
    dims = (0, *range(2, len(shape)))
    return (by_input.to(input.dtype), (grad * z.reshape(shape)).sum(dims).to(own),
            grad.sum(dims).to(own))


_group_norm_gradients = op(
    "_group_norm_gradients(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, "
    "Tensor? weight, int group) -> (Tensor, Tensor, Tensor)",
    kernel=preserve_channels_last(lambda grad, input, mean, rstd, weight, group: (
        kernels.group_norm_backward(grad, input, group, mean, rstd, weight)), 1),
    parts=_group_norm_gradients_parts, nondiff="mean rstd", **INNER,
    node="NativeGroupNormBackwardBackward0")


@op("native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, "
    "Tensor? weight, SymInt N, SymInt C, SymInt HxW, int group, bool[3] output_mask) "
    f"{THREE}", explicit=True, **INNER)
def native_group_norm_backward(grad_out: Tensor, input: Tensor, mean: Tensor, rstd: Tensor,
                               weight: Any, N: int, C: int, HxW: int, group: int, output_mask: Any
                               ) -> tuple[Any, ...]:
    """The gradients of `native_group_norm`, of those arguments that `output_mask` names."""
    return masked(_group_norm_gradients(grad_out, input, mean, rstd, weight, group), output_mask)


def _group_norm_vjp(grad: Any, needs: Any, input: Tensor, weight: Any, N: int, C: int, HxW: int,
                    group: int, eps: float, result1: Tensor, result2: Tensor) -> Any:
    gradients = (None, None, None) if grad[0] is None else native_group_norm_backward(
        grad[0], input, result1, result2, weight, N, C, HxW, group,
        [*wanted_gradients(needs, input, weight), needs[2]])
    if needs[0] and not (grad[1] is None is grad[2]):
        by_statistics = _by_statistics(grad[1], grad[2], input, result1, result2)
        gradients = (by_statistics if gradients[0] is None else gradients[0] + by_statistics,
                     *gradients[1:])
    return gradients


def _by_statistics(by_mean: Any, by_rstd: Any, input: Tensor, mean: Tensor, rstd: Tensor) -> Tensor:
    """The gradient of the input by way of the mean and 1 / sqrt(variance + eps) of groups."""
    n, groups = mean._array.shape
    x = input.reshape(n, groups, prod(input._array.shape[1:]) // groups)
    each = 0 if by_mean is None else by_mean.unsqueeze(2)
    if by_rstd is not None:
        centered = x - x.mean(2, True)
        each = each - (by_rstd * rstd.pow(3)).unsqueeze(2) * centered
    return (each / x._array.shape[2]).expand_as(x).reshape(input._array.shape).to(input.dtype)


def _check_groups(input: Tensor, weight: Tensor | None, bias: Tensor | None, channels: int,
                  groups: int) -> None:
    shape = list(input._array.shape)
    if groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {groups}")
    if channels % groups:
        raise RuntimeError("Expected number of channels in input to be divisible by num_groups, "
                           f"but got input of shape {shape} and num_groups={groups}")
    for name, p in (("weight", weight), ("bias", bias)):
        if p is not None and p._array.shape != (channels,):
            shown = p if weight is None else weight             # as PyTorch has it
            raise RuntimeError(f"Expected {name} to be a vector of size equal to the number of "
                               f"channels in input, but got {name} of shape "
                               f"{list(shown._array.shape)} and input of shape {shape}")


def _prepare_group_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, N: int, C: int,
                        HxW: int, group: int, eps: float) -> tuple[Any, ...]:
    same_types(input, weight, bias)
    _check_groups(input, weight, bias, C, group)
    if input._array.size != N * C * HxW:
        raise RuntimeError("Expected X.numel() == N * C * HxW to be true, but got false.  (Could "
                           "this error message be improved?  If so, please report an enhancement "
                           "request to PyTorch.)")
    return input, weight, bias, N, C, HxW, group, eps


native_group_norm = op(
    "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, "
    f"int group, float eps) {THREE}",
    kernel=image_kernel(lambda input, weight, bias, n, c, area, group, eps: kernels.group_norm(
        input, group, weight, bias, eps)),
    checked_kernel=checked("group_norm"), refuses=("GroupNormKernelImpl", "bBilUcW8"), out=False,
    parts=_group_norm_parts, vjp=_group_norm_vjp, method=False,
    canonical=_prepare_group_norm,
    doc="`group_norm` with the mean and 1 / sqrt(variance + eps) that it used, (n, groups) each.")


@op("group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, "
    "float eps=1e-05, bool cudnn_enabled=True) -> Tensor", out=False, method=False)
def group_norm_op(input: Tensor, num_groups: int, weight: Tensor | None, bias: Tensor | None,
                  eps: float, cudnn_enabled: bool) -> Tensor:
    """The channels (dimension 1) of each sample normalised in groups. Wu and He, ECCV 2018."""
    n, c, size = input.size(0), input.size(1), input._array.shape[2:]
    _check_groups(input, weight, bias, c, num_groups)
    return native_group_norm(input, weight, bias, n, c, prod(size), num_groups, eps)[0]


@python_function(namespace=NETWORK)
def group_norm(input: Tensor, num_groups: int, weight: Tensor | None = None,
               bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    """The channels (dimension 1) of each sample normalised in `num_groups` groups.

    Wu and He, Group normalization, ECCV 2018.
    """
    if input.dim() < 2:
        raise RuntimeError("Expected at least 2 dimensions for input tensor but received "
                           f"{input.dim()}")
    shape = input.shape
    rest = shape[0] * shape[1] // num_groups * prod(shape[2:])
    if rest == 1:
        raise ValueError("Expected more than 1 value per channel when training, got input size "
                         f"{[shape[0] * shape[1] // num_groups, num_groups, *shape[2:]]}")
    return group_norm_op(input, num_groups, weight, bias, eps, False)


# ---- others --------------------------------------------------------------------------------------


@python_function(namespace=NETWORK)
def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75,
                        k: float = 1.0) -> Tensor:
    """x / (k + alpha · mean of x² over `size` channels around)^beta. Krizhevsky et al., 2012."""
    if input.dim() < 3:
        raise ValueError("Expected 3D or higher dimensionality                          input "
                         f"(got {input.dim()} dimensions)")
    shape = input._array.shape
    if not input._array.size:
        return input
    functional = public[NETWORK]
    square = input * input
    square = square.unsqueeze(1) if len(shape) == 3 \
        else square.view(shape[0], 1, shape[1], shape[2], -1)
    flat = (0, 0) * (square._array.ndim - 3)
    padded = functional["pad"](square, (*flat, size // 2, (size - 1) // 2))
    n = padded._array.ndim - 2
    mean = functional[f"avg_pool{n}d"](padded, (size, *(1,) * (n - 1)), stride=1)
    return input / mean.squeeze(1).view(shape).mul(alpha).add(k).pow(beta)


@python_function(namespace=NETWORK)
def normalize(input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12,
              out: Tensor | None = None) -> Tensor:
    """x / max(‖x‖_p, eps) along `dim`.

    >>> import flambeau
    >>> flambeau.nn.functional.normalize(flambeau.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    length = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return flambeau.div(input, length) if out is None else flambeau.div(input, length, out=out)


@op("norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor", out=False, method=False)
def norm_except_dim(v: Tensor, pow: int, dim: int) -> Tensor:
    """The norms over all dimensions but `dim` (-1: over all), shaped so that they broadcast."""
    if dim == -1:
        return v.norm(pow)
    rank = v._array.ndim
    if rank == 1:
        return v.unsqueeze(1).norm(pow, 1).view(-1)
    return v.norm(pow, tuple([d for d in range(rank) if d != dim % rank]), keepdim=True)


__all__ = ["group_norm", "layer_norm", "local_response_norm",
           "normalize", "rms_norm"]
