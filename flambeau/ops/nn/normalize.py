"""Normalisations: (x - mean) / sqrt(variance + eps) · weight + bias, over various dimensions."""
from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

import flambeau
from flambeau.autograd.grad_mode import no_grad
from flambeau.core import modes
from flambeau.core.modes import interceptors
from flambeau.core.op import composite, public
from flambeau.core.promotion import join
from flambeau.core.tensor import Tensor, plain, wrap
from flambeau.kernels import normalization as kernels
from flambeau.kernels.layouts import keeping_layout
from flambeau.kernels.network import is_narrow
from flambeau.kernels.refused import refuse
from flambeau.ops.fused import fused
from flambeau.ops.linalg.support import composed
from flambeau.ops.node_names import plus
from flambeau.transforms.batching import is_batched

NETWORK = "nn.functional"


def standardized(input: Tensor, dims: tuple[int, ...], eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """(x - mean) / sqrt(variance + eps) over `dims`, with the mean and the (biased) variance."""
    mean = input.mean(dims, True)
    centered = input - mean
    variance = (centered * centered).mean(dims, True)
    return centered * flambeau.rsqrt(variance + eps), mean, variance


def affine(x: Tensor, weight: Tensor | None, bias: Tensor | None, shape: Any = None) -> Tensor:
    """x · weight + bias, both seen with `shape`."""
    for parameter, apply in ((weight, flambeau.mul), (bias, flambeau.add)):
        if parameter is not None:
            x = apply(x, parameter if shape is None else parameter.reshape(shape))
    return x


def _same_types(input: Tensor, *parameters: Tensor | None) -> None:
    """Parameters have the input's type, or float32 for a narrow input."""
    own = input._array.dtype
    for p in parameters:
        if p is not None and p._array.dtype is not own and p._array.dtype != own and not (
                is_narrow(own) and p._array.dtype == np.float32):
            raise RuntimeError("mixed dtype (CPU): all inputs must share same datatype.")


# ---- batch norm ----------------------------------------------------------------------------------


@keeping_layout
def _train_kernel(input: np.ndarray, weight: Any, bias: Any, eps: float, stats: list[Any]) -> Any:
    y, mean, variance, rstd = kernels.batch_norm(input, weight, bias, eps)
    stats[:] = mean, variance
    return y, mean, rstd


@fused(_train_kernel, extras=("mean", "rstd"), tensors=("input", "weight", "bias"),
       backward=lambda grad, input, weight, mean, rstd: kernels.batch_norm_backward(
           grad, input, mean, rstd, weight),
       node_name="NativeBatchNormBackward0", namespace=None)
def _batch_norm_train(input: Tensor, weight: Any, bias: Any, eps: float,
                      stats: list[Any]) -> Tensor:
    """Normalised by the batch's own statistics, which are left in `stats`."""
    n = input._array.ndim
    y, mean, variance = standardized(input, (0, *range(2, n)), eps)
    with no_grad():                     # not in the graph, but forward mode goes through
        stats[:] = mean.reshape(-1), variance.reshape(-1)
    return affine(y, weight, bias, (-1, *(1,) * (n - 2)))


@fused(keeping_layout(lambda input, weight, bias, mean, variance, eps: kernels.batch_norm_eval(
           input, mean, variance, weight, bias, eps)),
       tensors=("input", "weight", "bias", "running_mean", "running_var"),
       backward=lambda grad, input, weight, running_mean, running_var, eps: (
           *kernels.batch_norm_eval_backward(grad, input, running_mean, running_var, weight, eps),
           None, None),
       node_name="NativeBatchNormBackward0", namespace=None,
       nondiff=("running_mean", "running_var"))
def _batch_norm_eval(input: Tensor, weight: Any, bias: Any, running_mean: Tensor,
                     running_var: Tensor, eps: float) -> Tensor:
    """Normalised by given statistics."""
    column = (-1, *(1,) * (input._array.ndim - 2))
    scale = flambeau.rsqrt(running_var + eps).reshape(column)
    y = affine((input - running_mean.reshape(column)) * scale, weight, bias, column)
    return y.to(input.dtype)


def _refuse_unbatched(input: Tensor, *running: Tensor | None) -> None:
    """Under vmap each slice of a batched input needs running statistics of its own to update."""
    for level in modes.levels.get():
        if is_batched(input, level) and not all(is_batched(r, level) for r in running
                                                if r is not None):
            raise RuntimeError(
                "Batch norm got a batched tensor as input while the running_mean or running_var, "
                "which will be updated in place, were not batched.\nIf you are using a module and "
                "do not need eval mode, please set `track_running_stats` to be False.If you are "
                "using a prebuilt module and do not need eval mode, please see the functorch "
                "website for resources on how to patch your module to work with vmap")


def _update(running: Tensor | None, value: Any, momentum: float, factor: float = 1.0) -> None:
    """running ← (1 - momentum) · running + momentum · factor · value."""
    if running is None:
        return
    if type(value) is np.ndarray and type(running) in plain and not running._inference:
        target = running._array
        mixed = target * (1 - momentum) + value * (momentum * factor)
        target[...] = mixed
    else:
        value = wrap(value) if type(value) is np.ndarray else value
        running.copy_(running * (1 - momentum) + (value * (momentum * factor)).to(running.dtype))


def _batch_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor | None,
                var: Tensor | None, training: bool, momentum: float, eps: float,
                stats: list[Any] | None = None) -> Tensor:
    x = input._array
    channels = x.shape[1] if x.ndim > 1 else 0
    if not training:
        for name, running in (("running_mean", mean), ("running_var", var)):
            if running is None:
                raise RuntimeError(f"{name} must be defined in evaluation mode")
    if (mean is None) != (var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")
    for name, p in (("running_mean", mean), ("running_var", var), ("weight", weight),
                    ("bias", bias)):
        if p is not None and p._array.size != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {p._array.size}")
    refuse(x, "bBilUcW8", "batch_norm")
    _same_types(input, mean, var, weight, bias)
    if not training:
        return _batch_norm_eval(input, weight, bias, mean, var, eps)
    if interceptors:
        _refuse_unbatched(input, mean, var)
    stats = [] if stats is None else stats
    result = _batch_norm_train(input, weight, bias, eps, stats)
    if (mean is not None or var is not None) and x.size:
        n = x.size // channels
        _update(mean, stats[0], momentum)
        _update(var, stats[1], momentum, n / (n - 1) if n > 1 else float("nan"))
    return result


@composite(name="batch_norm")
def batch_norm_op(input: Tensor, weight: Tensor | None, bias: Tensor | None,
                  running_mean: Tensor | None, running_var: Tensor | None, training: bool,
                  momentum: float, eps: float, cudnn_enabled: bool = False) -> Tensor:
    """`nn.functional.batch_norm` with its arguments in another order."""
    return _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)


@composite(namespace=NETWORK)
def batch_norm(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None,
               weight: Tensor | None = None, bias: Tensor | None = None, training: bool = False,
               momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
    """Each channel (dimension 1) normalised over all others: by the running statistics, or, in
    `training`, by the batch's own, which then update the running ones.

    Ioffe and Szegedy, Batch normalization, ICML 2015.
    """
    if training:
        if eps <= 0.0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
        verify_batch_size(input._array.shape)
    if type(momentum) is not float and not isinstance(momentum, (int, float)):
        raise TypeError("batch_norm(): argument 'momentum' (position 7) must be float, not "
                        f"{type(momentum).__name__}")
    return _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)


def verify_batch_size(shape: Any) -> None:
    """Raise if each channel has one value only, whose variance says nothing."""
    if prod(shape) == (shape[1] if len(shape) > 1 else 1) and len(shape) > 1:
        raise ValueError("Expected more than 1 value per channel when training, got input size "
                         f"torch.Size({list(shape)})")


@composed
def native_batch_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None,
                      running_mean: Tensor | None, running_var: Tensor | None, training: bool,
                      momentum: float, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """`batch_norm` with the mean and 1 / sqrt(variance + eps) that it used (none in evaluation)."""
    stats: list[Any] = []
    result = _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps,
                         stats)
    if not training:
        return result, flambeau.empty(0, dtype=input.dtype), flambeau.empty(0, dtype=input.dtype)
    mean, variance = [wrap(s) if type(s) is np.ndarray else s for s in stats]
    kept = mean, flambeau.rsqrt(variance + eps)
    given = [p for p in (weight, bias, running_mean, running_var) if p is not None]
    if all(p.dtype == input.dtype for p in given):      # else they are of the parameters' type
        kept = tuple(s.to(input.dtype) for s in kept)
    return result, *kept


@composed
def _native_batch_norm_legit(input: Tensor, weight: Tensor | None, bias: Tensor | None,
                             *statistics: Any, **named: Any) -> tuple[Tensor, Tensor, Tensor]:
    """`native_batch_norm`; running statistics may be left out altogether."""
    if len(statistics) < 5 and "running_mean" not in named:
        statistics = (None, None, *statistics)
    return native_batch_norm(input, weight, bias, *statistics, **named)


# ---- layer norm and rms norm ---------------------------------------------------------------------


@fused(lambda input, weight, bias, dims, eps: kernels.layer_norm(input, dims, weight, bias, eps),
       extras=("mean", "rstd"), tensors=("input", "weight", "bias"), namespace=None,
       backward=lambda grad, input, weight, mean, rstd, dims: kernels.layer_norm_backward(
           grad, input, dims, mean, rstd, weight),
       node_name="NativeLayerNormBackward0")
def _layer_norm(input: Tensor, weight: Any, bias: Any, dims: int, eps: float) -> Tensor:
    last = tuple(range(-dims, 0))
    return affine(standardized(input, last, eps)[0], weight, bias)


def _check_normalized(input: Tensor, shape: Any, weight: Any, bias: Any, name: str) -> int:
    """How many dimensions are normalised over."""
    if type(shape) is int:
        raise TypeError(f"{name}(): argument 'normalized_shape' (position 2) must be tuple of "
                        "ints, "
                        "not int")
    shape, own = tuple(shape), input._array.shape
    if not shape:
        raise RuntimeError("Expected normalized_shape to be at least 1-dimensional, i.e., "
                           "containing "
                           f"at least one element, but got normalized_shape = {list(shape)}")
    for what, p in (("weight", weight), ("bias", bias)):
        if p is not None and p._array.shape != shape:
            raise RuntimeError(f"Expected {what} to be of same shape as normalized_shape, but got "
                               f"{what} of shape {list(p._array.shape)} and normalized_shape = "
                               f"{list(shape)}")
    if own[len(own) - len(shape):] != shape:
        stars = f"*{', ' if name == 'layer_norm' else ''}" + ", ".join(map(str, shape))
        raise RuntimeError(f"Given normalized_shape={list(shape)}, expected input with shape "
                           f"[{stars}], but got input of size{list(own)}")
    return len(shape)


@composite(namespace=(NETWORK, "torch"))
def layer_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = None,
               bias: Tensor | None = None, eps: float = 1e-5,
               cudnn_enable: bool = True) -> Tensor:
    """The last dimensions, `normalized_shape`, normalised for each index of the others.

    Ba, Kiros and Hinton, Layer normalization, 2016.

    >>> import flambeau
    >>> flambeau.layer_norm(flambeau.tensor([[1.0, 2.0, 3.0]]), (3,))
    tensor([[-1.2247,  0.0000,  1.2247]])
    """
    dims = _check_normalized(input, normalized_shape, weight, bias, "layer_norm")
    x = input._array
    _same_types(input, weight, bias)
    refuse(x, "bBilUcW8", "LayerNormKernelImpl")
    return _layer_norm(input, weight, bias, dims, eps)


@composite
def native_layer_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None,
                      bias: Tensor | None, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """`layer_norm` with the mean and 1 / sqrt(variance + eps) that it used."""
    result = layer_norm(input, normalized_shape, weight, bias, eps)
    last = tuple(range(-len(normalized_shape), 0))
    _, mean, variance = standardized(input.detach(), last, eps)
    return result, mean, flambeau.rsqrt(variance + eps)


def _rms_eps(input: Tensor, eps: float | None) -> float:
    """The default is the machine epsilon of the type that is computed in."""
    own = input._array.dtype
    wide = np.dtype(np.float32) if is_narrow(own) else own
    return float(np.finfo(wide).eps) if eps is None else eps


@fused(keeping_layout(lambda input, weight, dims, eps: kernels.rms_norm(
           input, dims, weight, eps)),
       extras=("rrms",), tensors=("input", "weight"), namespace=None, node_name="MulBackward0",
       unfolds=True,
       when=lambda input, weight, dims, eps: input._array.dtype.kind not in "cW",
       backward=lambda grad, input, weight, rrms, dims: kernels.rms_norm_backward(
           grad, input, dims, rrms, weight))
def _rms_norm(input: Tensor, weight: Any, dims: int, eps: float) -> Tensor:
    last = tuple(range(-dims, 0))
    y = input * flambeau.rsqrt(plus(input.pow(2).mean(last, True), eps))
    return y if weight is None else y * weight


@composite(namespace=(NETWORK, "torch"))
def rms_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = None,
             eps: float | None = None) -> Tensor:
    """x / sqrt(mean of x² + eps) · weight over the last dimensions, `normalized_shape`.

    Zhang and Sennrich, Root mean square layer normalization, NeurIPS 2019.
    """
    if input._array.ndim < len(normalized_shape):
        raise ValueError(f"Input tensor must have at least {len(normalized_shape)} dimensions, but "
                         f"got {input._array.ndim}")
    dims = _check_normalized(input, normalized_shape, weight, None, "rms_norm")
    refuse(input._array, "bBilUW8", "rms_norm")
    if weight is not None and weight._array.dtype != input._array.dtype \
            and not is_narrow(input._array.dtype):
        common = join(input.dtype, weight.dtype)
        input, weight = input.to(common), weight.to(common)
    return _rms_norm(input, weight, dims, _rms_eps(input, eps))


# ---- group norm and instance norm ----------------------------------------------------------------


@fused(keeping_layout(lambda input, weight, bias, groups, eps: kernels.group_norm(
           input, groups, weight, bias, eps)),
       extras=("mean", "rstd"), tensors=("input", "weight", "bias"), namespace=None,
       backward=lambda grad, input, weight, mean, rstd, groups: kernels.group_norm_backward(
           grad, input, groups, mean, rstd, weight),
       node_name="NativeGroupNormBackward0")
def _group_norm(input: Tensor, weight: Any, bias: Any, groups: int, eps: float) -> Tensor:
    shape = input._array.shape
    y, _, _ = standardized(input.reshape(shape[0], groups, prod(shape[1:]) // groups), (2,), eps)
    return affine(y.reshape(shape), weight, bias, (-1, *(1,) * (len(shape) - 2)))


@composite(name="group_norm")
def group_norm_op(input: Tensor, num_groups: int, weight: Tensor | None = None,
                  bias: Tensor | None = None, eps: float = 1e-5,
                  cudnn_enabled: bool = True) -> Tensor:
    """The channels (dimension 1) of each sample normalised in groups. Wu and He, ECCV 2018."""
    shape = input._array.shape
    if len(shape) < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received "
                           f"{len(shape)}")
    if num_groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {num_groups}")
    if shape[1] % num_groups:
        raise RuntimeError("Expected number of channels in input to be divisible by num_groups, "
                           "but "
                           f"got input of shape {list(shape)} and num_groups={num_groups}")
    for name, p in (("weight", weight), ("bias", bias)):
        if p is not None and p._array.shape != (shape[1],):
            raise RuntimeError(f"Expected {name} to be a vector of size equal to the number of "
                               f"channels in input, but got {name} of shape "
                               f"{list(p._array.shape)} and input of shape {list(shape)}")
    _same_types(input, weight, bias)
    refuse(input._array, "bBilUcW8", "GroupNormKernelImpl")
    return _group_norm(input, weight, bias, num_groups, eps)


@composite(namespace=NETWORK)
def group_norm(input: Tensor, num_groups: int, weight: Tensor | None = None,
               bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    """The channels (dimension 1) of each sample normalised in `num_groups` groups.

    Wu and He, Group normalization, ECCV 2018.
    """
    shape = input._array.shape
    if len(shape) < 2:
        raise RuntimeError("Expected at least 2 dimensions for input tensor but received "
                           f"{len(shape)}")
    rest = shape[0] * shape[1] // num_groups * prod(shape[2:])
    if rest == 1:
        raise ValueError("Expected more than 1 value per channel when training, got input size "
                         f"{[shape[0] * shape[1] // num_groups, num_groups, *shape[2:]]}")
    return group_norm_op(input, num_groups, weight, bias, eps)


@composite
def native_group_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, N: int, C: int,
                      HxW: int, group: int, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """`group_norm` with the mean and 1 / sqrt(variance + eps) that it used, (n, groups) each."""
    result = group_norm_op(input, group, weight, bias, eps)
    _, mean, variance = standardized(input.reshape(N, group, C * HxW // group), (2,), eps)
    return result, mean.squeeze(2), flambeau.rsqrt(variance + eps).squeeze(2)


def _repeated(p: Tensor | None, n: int) -> Tensor | None:
    return None if p is None else p.repeat(n)


def _instance_norm(input: Tensor, running_mean: Any, running_var: Any, weight: Any, bias: Any,
                   use_input_stats: bool, momentum: float, eps: float) -> Tensor:
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError("Expected running_mean and running_var to be defined when "
                           "use_input_stats is false")
    if (running_mean is None) != (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")
    shape = input._array.shape
    n, channels = shape[0], shape[1]
    mean, var = _repeated(running_mean, n), _repeated(running_var, n)
    result = _batch_norm(input.reshape(1, n * channels, *shape[2:]), _repeated(weight, n),
                         _repeated(bias, n), mean, var, use_input_stats, momentum, eps)
    for running, each in ((running_mean, mean), (running_var, var)):
        if running is not None and use_input_stats:
            running.copy_(each.view(n, channels).mean(0))
    return result.view(shape)


@composite(name="instance_norm")
def instance_norm_op(input: Tensor, weight: Tensor | None, bias: Tensor | None,
                     running_mean: Tensor | None, running_var: Tensor | None,
                     use_input_stats: bool, momentum: float, eps: float,
                     cudnn_enabled: bool = False) -> Tensor:
    """`nn.functional.instance_norm` with its arguments in another order."""
    return _instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum,
                          eps)


@composite(namespace=NETWORK)
def instance_norm(input: Tensor, running_mean: Tensor | None = None,
                  running_var: Tensor | None = None, weight: Tensor | None = None,
                  bias: Tensor | None = None, use_input_stats: bool = True, momentum: float = 0.1,
                  eps: float = 1e-5) -> Tensor:
    """Each channel of each sample normalised by itself. Ulyanov et al., 2016."""
    shape = input._array.shape
    if use_input_stats and prod(shape[2:]) == 1:
        raise ValueError("Expected more than 1 spatial element when training, got input size "
                         f"torch.Size({list(shape)})")
    return _instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum,
                          eps)


# ---- others --------------------------------------------------------------------------------------


@composite(namespace=NETWORK)
def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75,
                        k: float = 1.0) -> Tensor:
    """x / (k + alpha · mean of x² over `size` channels around)^beta. Krizhevsky et al., 2012."""
    shape = input._array.shape
    if len(shape) < 3:
        raise ValueError("Expected 3D or higher dimensionality                          input "
                         f"(got {len(shape)} dimensions)")
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


@composite(namespace=NETWORK)
def normalize(input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12,
              out: Tensor | None = None) -> Tensor:
    """x / max(‖x‖_p, eps) along `dim`.

    >>> import flambeau
    >>> flambeau.nn.functional.normalize(flambeau.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    length = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return flambeau.div(input, length) if out is None else flambeau.div(input, length, out=out)


@composite
def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """The norms over all dimensions but `dim` (-1: over all), shaped so that they broadcast."""
    if dim == -1:
        return v.norm(pow)
    rank = v._array.ndim
    if rank == 1:
        return v.unsqueeze(1).norm(pow, 1).view(-1)
    return v.norm(pow, tuple([d for d in range(rank) if d != dim % rank]), keepdim=True)


__all__ = ["batch_norm", "group_norm", "instance_norm", "layer_norm", "local_response_norm",
           "normalize", "rms_norm"]
