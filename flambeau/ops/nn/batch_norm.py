"""Batch norm and instance norm: each channel normalised by itself, over all samples or in each."""
from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

import flambeau
from flambeau.core import modes
from flambeau.core.autograd.grad_mode import no_grad
from flambeau.core.autograd.graph import next_order
from flambeau.core.copy_on_write import own
from flambeau.core.tensor import Tensor
from flambeau.dispatch.declaration import op
from flambeau.dispatch.python_functions import python_function
from flambeau.kernels.declaration import checked
from flambeau.kernels.moving.layouts import preserve_channels_last
from flambeau.kernels.network import normalization as kernels
from flambeau.kernels.refused import refuse
from flambeau.ops.nn.normalize import (
    INNER,
    NETWORK,
    THREE,
    affine,
    as_image,
    image_kernel,
    input_gradient,
    masked,
    recomputed,
    same_types,
    standardized,
    wanted_gradients,
)
from flambeau.ops.node_names import one_node, rename
from flambeau.transforms.batching import is_batched

# ---- batch norm ----------------------------------------------------------------------------------


def _batch_norm_kernel(input: np.ndarray, weight: Any, bias: Any, mean: Any, var: Any,
                       training: bool, momentum: float, eps: float) -> Any:
    if not training:
        y = kernels.batch_norm_eval(input, mean, var, weight, bias, eps)
        return y, np.empty(0, input.dtype), np.empty(0, input.dtype)
    y, center, variance, rstd = kernels.batch_norm(input, weight, bias, eps)
    if input.size:
        count = input.size // input.shape[1]
        factor = count / (count - 1) if count > 1 else float("nan")
        for running, value in ((mean, center), (var, variance * np.float64(factor))):
            if running is not None:
                running[...] = running * (1 - momentum) + value * momentum
    if all(p is None or p.dtype == input.dtype for p in (weight, bias, mean, var)):
        center, rstd = center.astype(input.dtype), rstd.astype(input.dtype)
    return y, center, rstd


def _check_statistics(input: Tensor, weight: Tensor | None, bias: Tensor | None,
                      mean: Tensor | None, var: Tensor | None, training: bool) -> None:
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


def _prepare_batch_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None,
                        mean: Tensor | None, var: Tensor | None, training: bool, momentum: float,
                        eps: float) -> tuple[Any, ...]:
    _check_statistics(input, weight, bias, mean, var, training)
    refuse(input._array, "bBilUcW8", "batch_norm")
    same_types(input, weight, bias, mean, var)
    for running in (mean, var) if training else ():
        if running is not None and not running._array.flags.writeable:
            own(running._array)
    return input, weight, bias, mean, var, training, momentum, eps


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


def _batch_norm_parts(input: Tensor, weight: Any, bias: Any, mean: Any, var: Any, training: bool,
                      momentum: float, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    shape = input._array.shape
    column = (-1, *(1,) * (len(shape) - 2))
    if not training:
        scale = flambeau.rsqrt(var + eps).reshape(column)
        y = affine((as_image(input) - mean.reshape(column)) * scale, weight, bias, column)
        empty = flambeau.empty(0, dtype=input.dtype)
        return y.to(input.dtype), empty, empty.clone()
    _refuse_unbatched(input, mean, var)
    y, center, variance = standardized(input, (0, *range(2, len(shape))), eps)
    center, variance = center.reshape(-1).detach(), variance.reshape(-1).detach()
    with no_grad():
        rstd = flambeau.rsqrt(variance + eps)
        if 0 not in shape:
            count = prod(shape) // shape[1]
            factor = count / (count - 1) if count > 1 else float("nan")
            for running, value, by in ((mean, center, momentum),
                                       (var, variance, momentum * factor)):
                if running is not None:
                    running.copy_((value * by).to(running.dtype) + running * (1 - momentum))
    return affine(y, weight, bias, column), center, rstd


def _batch_norm_gradients_parts(grad: Tensor, input: Tensor, weight: Any, mean: Tensor,
                                spread: Tensor, train: bool, eps: float) -> tuple[Tensor, ...]:
    rank = input._array.ndim
    dims, column = (0, *range(2, rank)), (-1, *(1,) * (rank - 2))
    if train:
        z, scale = recomputed(input, dims, spread.reshape(column))
    else:
        scale = flambeau.rsqrt(spread + eps).reshape(column)
        z = (input - mean.reshape(column)) * scale
    by_z = grad if weight is None else grad * weight.reshape(column)
    by_input = input_gradient(by_z, z, scale, dims) if train else by_z * scale
    own = grad.dtype if weight is None else weight.dtype
    return by_input.to(input.dtype), (grad * z).sum(dims).to(own), grad.sum(dims).to(own)


_batch_norm_gradients = op(
    "_batch_norm_gradients(Tensor grad_out, Tensor input, Tensor? weight, Tensor mean, "
    "Tensor spread, bool train, float eps) -> (Tensor, Tensor, Tensor)",
    kernel=preserve_channels_last(lambda grad, input, weight, mean, spread, train, eps: (
        kernels.batch_norm_backward(grad, input, mean, spread, weight) if train else
        kernels.batch_norm_eval_backward(grad, input, mean, spread, weight, eps)), 1),
    parts=_batch_norm_gradients_parts, nondiff="mean spread", **INNER,
    node="NativeBatchNormBackwardBackward0")


@op("native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, "
    "Tensor? running_mean, Tensor? running_var, Tensor? save_mean, Tensor? save_invstd, "
    f"bool train, float eps, bool[3] output_mask) {THREE}", explicit=True, **INNER)
def native_batch_norm_backward(grad_out: Tensor, input: Tensor, weight: Any, running_mean: Any,
                               running_var: Any, save_mean: Any, save_invstd: Any, train: bool,
                               eps: float, output_mask: Any) -> tuple[Any, ...]:
    """The gradients of `native_batch_norm`, of those arguments that `output_mask` names."""
    statistics = (save_mean, save_invstd) if train else (running_mean, running_var)
    return masked(_batch_norm_gradients(grad_out, input, weight, *statistics, train, eps),
                   output_mask)


def _batch_norm_vjp(grad: Any, needs: Any, input: Tensor, weight: Any, running_mean: Any,
                    running_var: Any, result1: Tensor, result2: Tensor, training: bool,
                    eps: float) -> Any:
    return (*native_batch_norm_backward(
        grad[0], input, weight, running_mean, running_var, result1, result2, training, eps,
        [*wanted_gradients(needs, input, weight), needs[2]]), None, None)


_BATCH = ("Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
          "bool training, float momentum, float eps")

native_batch_norm = op(
    f"native_batch_norm({_BATCH}) {THREE}",
    kernel=image_kernel(_batch_norm_kernel), checked_kernel=checked("batch_norm"),
    canonical=_prepare_batch_norm, parts=_batch_norm_parts, vjp=_batch_norm_vjp,
    nondiff="running_mean running_var", differentiable=(True, False, False), method=False,
    out_type="expected scalar type {found} but found {out}",
    doc="`batch_norm` with the mean and 1 / sqrt(variance + eps) that it used.")


@op("_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, "
    f"Tensor running_var, bool training, float momentum, float eps) {THREE}",
    "_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, "
    f"float momentum, float eps) {THREE}", method=False,
    out_type="expected scalar type {found} but found {out}",
    out_reported_as="aten::_native_batch_norm_legit")
def _native_batch_norm_legit(input: Tensor, weight: Any, bias: Any, running_mean: Any,
                             running_var: Any, training: bool, momentum: float, eps: float
                             ) -> tuple[Tensor, Tensor, Tensor]:
    """`native_batch_norm`; running statistics may be left out altogether."""
    since = next_order()
    results = native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum,
                                eps)
    rename(results[0], f"NativeBatchNormLegitBackward{int(running_mean is None)}", since)
    return results


_UPDATED = ("Tensor input, Tensor? weight, Tensor? bias, Tensor{} running_mean, Tensor{} "
            "running_var, float momentum, float eps")


@op(f"_native_batch_norm_legit_no_training({_UPDATED.format('', '')}) {THREE}", method=False)
@one_node(inputs="input weight bias")
def _native_batch_norm_legit_no_training(input: Tensor, weight: Any, bias: Any,
                                         running_mean: Tensor, running_var: Tensor,
                                         momentum: float, eps: float) -> Any:
    """`native_batch_norm` by the running statistics, with no others to give."""
    result, *_ = native_batch_norm(input, weight, bias, running_mean, running_var, False, momentum,
                                   eps)
    return result, flambeau.empty(0), flambeau.empty(0)


@op("_native_batch_norm_legit_functional(Tensor input, Tensor? weight, Tensor? bias, "
    "Tensor running_mean, Tensor running_var, bool training, float momentum, float eps) -> "
    "(Tensor, Tensor, Tensor, Tensor running_mean_out, Tensor running_var_out)", method=False,
    function=False, out=False)
@one_node(name="NativeBatchNormLegitBackward0", inputs="input weight bias")
def _native_batch_norm_legit_functional(input: Tensor, weight: Any, bias: Any,
                                        running_mean: Tensor, running_var: Tensor, training: bool,
                                        momentum: float, eps: float) -> Any:
    """`native_batch_norm`, with the running statistics after it as further results."""
    new = running_mean.clone(), running_var.clone()
    return *native_batch_norm(input, weight, bias, *new, training, momentum, eps), *new


_FOUR = "(Tensor, Tensor, Tensor, Tensor)"


def _with_reserve(results: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Also what cuDNN would keep for the backward pass: nothing."""
    return *results, flambeau.empty(0, dtype=flambeau.uint8)


@op(f"_batch_norm_with_update({_UPDATED.format('', '')}) -> {_FOUR}", method=False, function=False,
    out=False)
@one_node(inputs="input weight bias")
def _batch_norm_with_update(input: Tensor, weight: Any, bias: Any, running_mean: Tensor,
                            running_var: Tensor, momentum: float, eps: float) -> Any:
    """`native_batch_norm` in training, which updates the running statistics."""
    return _with_reserve(native_batch_norm(input, weight, bias, running_mean, running_var, True,
                                           momentum, eps))


@op(f"_batch_norm_no_update({_UPDATED.format('?', '?')}) -> {_FOUR}", method=False,
    function=False, out=False)
@one_node(inputs="input weight bias")
def _batch_norm_no_update(input: Tensor, weight: Any, bias: Any, running_mean: Any,
                          running_var: Any, momentum: float, eps: float) -> Any:
    """`native_batch_norm` by the running statistics."""
    return _with_reserve(native_batch_norm(input, weight, bias, running_mean, running_var, False,
                                           momentum, eps))


def _batch_norm(input: Tensor, weight: Any, bias: Any, running_mean: Any, running_var: Any,
                training: bool, momentum: float, eps: float, cudnn_enabled: bool) -> Tensor:
    if not input._array.size:           # no statistics to take, but derivatives by all there is
        _check_statistics(input, weight, bias, running_mean, running_var, training)
        first = [None if p is None else p.select(0, 0) for p in (weight, bias)]
        return affine(input.clone(), *first)
    if modes.interceptors:              # which see what cuDNN would keep for the backward pass
        flambeau.empty(0, dtype=flambeau.uint8, layout=input.layout, device=input.device)
    return native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum,
                             eps)[0]


batch_norm_op = op(
    f"batch_norm({_BATCH}, bool cudnn_enabled) -> Tensor", body=_batch_norm, out=False,
    method=False, doc="`nn.functional.batch_norm` with its arguments in another order.")


@python_function(namespace=NETWORK)
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
        verify_batch_size(input.size())
    elif eps < 0.0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
    return batch_norm_op(input, weight, bias, running_mean, running_var, training, momentum, eps,
                         False)


def verify_batch_size(shape: Any) -> None:
    """Raise if each channel has one value only, whose variance says nothing."""
    if prod(shape) == (shape[1] if len(shape) > 1 else 1) and len(shape) > 1:
        raise ValueError("Expected more than 1 value per channel when training, got input size "
                         f"torch.Size({list(shape)})")


# ---- instance norm -------------------------------------------------------------------------------


def _repeated(p: Tensor | None, n: int) -> Tensor | None:
    return None if p is None else p.repeat(n)


@op("instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, "
    "Tensor? running_var, bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> "
    "Tensor", out=False, method=False)
def instance_norm_op(input: Tensor, weight: Tensor | None, bias: Tensor | None,
                     running_mean: Tensor | None, running_var: Tensor | None,
                     use_input_stats: bool, momentum: float, eps: float,
                     cudnn_enabled: bool) -> Tensor:
    """`nn.functional.instance_norm` with its arguments in another order."""
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError("Expected running_mean and running_var to be defined when "
                           "use_input_stats is false")
    if (running_mean is None) != (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")
    shape = input._array.shape
    n, channels = shape[0], shape[1]
    mean, var = (None if p is None else p.repeat(n).to(input.dtype)
                 for p in (running_mean, running_var))
    result = batch_norm_op(input.reshape(1, n * channels, *shape[2:]), _repeated(weight, n),
                           _repeated(bias, n), mean, var, use_input_stats, momentum, eps, True)
    for running, each in ((running_mean, mean), (running_var, var)):
        if running is not None and use_input_stats:
            running.copy_(each.view(n, channels).mean(0))
    return result.view(shape)


@python_function(namespace=NETWORK)
def instance_norm(input: Tensor, running_mean: Tensor | None = None,
                  running_var: Tensor | None = None, weight: Tensor | None = None,
                  bias: Tensor | None = None, use_input_stats: bool = True, momentum: float = 0.1,
                  eps: float = 1e-5) -> Tensor:
    """Each channel of each sample normalised by itself. Ulyanov et al., 2016."""
    if use_input_stats:
        shape = input.size()
        if prod(shape[2:]) == 1:
            raise ValueError("Expected more than 1 spatial element when training, got input size "
                             f"torch.Size({list(shape)})")
    return instance_norm_op(input, weight, bias, running_mean, running_var, use_input_stats,
                            momentum, eps, False)


__all__ = ["batch_norm", "instance_norm", "native_batch_norm", "verify_batch_size"]
