"""Losses element by element, and their gradients, which are ops of their own.

What a kernel does in one go is also said by other ops, the parts, which transforms and second
derivatives run. The functions of `nn.functional` are in `functions`.
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np

import flambeau
from flambeau.core.modes import grad_enabled, interceptors
from flambeau.core.promotion import type_name
from flambeau.core.shapes import broadcast_shapes, written_shape_error
from flambeau.core.tensor import Tensor, plain_types, wrap
from flambeau.dispatch.declaration import op
from flambeau.kernels.declaration import declining
from flambeau.kernels.network import losses as kernels
from flambeau.kernels.refused import refuse
from flambeau.ops.inplace import check_stored
from flambeau.ops.loss.reduction import reduce_loss, refuse_gradient, split_grad
from flambeau.ops.node_names import plus
from flambeau.ops.out_types import FOUND_TYPE
from flambeau.ops.pointwise.arithmetic import together

_REAL = "bBilUcW8"
_LOSS: dict[str, Any] = {"namespace": "_nn", "method": False, "autocast": "full"}
_BACKWARD: dict[str, Any] = {"function": False, "method": False, "out": False}


def _prepare_mse_loss(self: Tensor, target: Tensor, *rest: Any) -> tuple[Any, ...]:
    """Both in their common type and shape."""
    self, target = together(self, target)
    if self._array.shape != target._array.shape:
        self, target = flambeau.broadcast_tensors(self, target)
    return self, target, *rest


def _gradient_of(name: str, kernel: Any, parts: Any, number: str = "", nondiff: str = "") -> Any:
    """The op of a loss's gradient in its first argument."""
    more = f", float {number}" * bool(number)
    return op(f"{name}_backward(Tensor grad_output, Tensor self, Tensor target, int reduction{more}"
              ") -> Tensor", kernel=kernel, checked_kernel=declining(kernel), parts=parts,
              nondiff=nondiff, **_BACKWARD)


# ---- distances of elements -----------------------------------------------------------------------


def _mse_loss_parts(self: Tensor, target: Tensor, reduction: int) -> Tensor:
    difference = self - target
    return reduce_loss(difference * difference, reduction)


mse_loss = op(
    "mse_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor", kernel=kernels.mse_loss,
    checked_kernel=declining(kernels.mse_loss), canonical=_prepare_mse_loss, parts=_mse_loss_parts,
    refuses=("mse_cpu", _REAL), **_LOSS,
    d_self=lambda grad, self, target, reduction: mse_loss_backward(grad, self, target, reduction),
    d_target=lambda grad, self, target, reduction: mse_loss_backward(grad, target, self, reduction),
    doc="(input - target)².")
mse_loss_backward = _gradient_of(
    "mse_loss", kernels.mse_loss_backward, lambda grad_output, self, target, reduction:
    split_grad(grad_output, self._array.size, reduction) * ((self - target) * 2))


@op("l1_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor", out=False, **_LOSS)
def l1_loss(self: Tensor, target: Tensor, reduction: int) -> Tensor:
    """|input - target|."""
    return reduce_loss((self - target).abs(), reduction)


def _smooth_l1_loss_parts(self: Tensor, target: Tensor, reduction: int, beta: float) -> Tensor:
    difference = self - target
    distance = difference.abs()
    near = difference * difference * (0.5 / beta if beta else 0.5)
    return reduce_loss(flambeau.where(distance < beta, near, distance - 0.5 * beta), reduction)


def _prepare_smooth_l1_loss(self: Tensor, target: Tensor, reduction: int,
                            beta: float) -> tuple[Any, ...]:
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    return _prepare_mse_loss(self, target, reduction, beta)


smooth_l1_loss = op(
    "smooth_l1_loss(Tensor self, Tensor target, int reduction=Mean, float beta=1.0) -> Tensor",
    kernel=kernels.smooth_l1_loss, checked_kernel=declining(kernels.smooth_l1_loss),
    parts=_smooth_l1_loss_parts,
    canonical=_prepare_smooth_l1_loss, refuses=("smooth_l1_cpu", _REAL), **_LOSS,
    d_self=lambda grad, self, target, reduction, beta: smooth_l1_loss_backward(
        grad, self, target, reduction, beta),
    d_target=lambda grad, self, target, reduction, beta: smooth_l1_loss_backward(
        grad, target, self, reduction, beta),
    doc="½ d² / beta where d = |input - target| is below `beta`, else d - ½ beta.")
smooth_l1_loss_backward = _gradient_of(
    "smooth_l1_loss", kernels.smooth_l1_loss_backward,
    lambda grad_output, self, target, reduction, beta:
    split_grad(grad_output, self._array.size, reduction) * ((self - target) / beta).clamp(-1, 1),
    "beta")


def _huber_loss_parts(self: Tensor, target: Tensor, reduction: int, delta: float) -> Tensor:
    difference = self - target
    distance = difference.abs()
    far = (distance - 0.5 * delta) * delta
    near = difference * difference * 0.5
    return reduce_loss(flambeau.where(distance < delta, near, far), reduction)


def _prepare_huber_loss(self: Tensor, target: Tensor, reduction: int, delta: float) -> tuple[Any,
                                                                                             ...]:
    """In the type of the input, where the loss is stored."""
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    both = [t._array for t in together(self, target)]
    check_stored("huber_loss", self, np.broadcast_to(both[1], broadcast_shapes(
        *[array.shape for array in both])))
    refuse(both[0], _REAL, "huber_cpu")
    if target._array.dtype != self._array.dtype:
        target = target.to(self.dtype)
    return _prepare_mse_loss(self, target, reduction, delta)


huber_loss = op(
    "huber_loss(Tensor self, Tensor target, int reduction=Mean, float delta=1.0) -> Tensor",
    kernel=kernels.huber_loss, checked_kernel=declining(kernels.huber_loss),
    parts=_huber_loss_parts, canonical=_prepare_huber_loss, refuses=("huber_cpu", _REAL), **_LOSS,
    d_self=lambda grad, self, target, reduction, delta: huber_loss_backward(
        grad, self, target, reduction, delta),
    d_target=lambda grad, self, target, reduction, delta: huber_loss_backward(
        grad, target, self, reduction, delta),
    doc="½ d² where d = |input - target| is below `delta`, else delta · (d - ½ delta).")
huber_loss_backward = _gradient_of(
    "huber_loss", kernels.huber_loss_backward,
    lambda grad_output, self, target, reduction, delta:
    split_grad(grad_output, self._array.size, reduction) * (self - target).clamp(-delta, delta),
    "delta")


def _soft_margin_loss_parts(self: Tensor, target: Tensor, reduction: int) -> Tensor:
    return reduce_loss((-self * target).exp().log1p(), reduction)


def _prepare_soft_margin_loss(self: Tensor, target: Tensor, reduction: int) -> tuple[Any, ...]:
    """Each step is stored in the type of the input."""
    refuse_gradient("soft_margin_loss", "target", target)
    check_stored("mul", self, (-self * target)._array)
    check_stored("exp", self, self.exp()._array)
    if target._array.dtype != self._array.dtype:
        target = target.to(self.dtype)
    return self, target.expand(self._array.shape), reduction


soft_margin_loss = op(
    "soft_margin_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor",
    kernel=kernels.soft_margin_loss, checked_kernel=declining(kernels.soft_margin_loss),
    canonical=_prepare_soft_margin_loss, parts=_soft_margin_loss_parts, out_type=FOUND_TYPE,
    **_LOSS, d_self=lambda grad, self, target, reduction: soft_margin_loss_backward(
        grad, self, target, reduction),
    doc="log(1 + exp(-target · x)) for targets 1 and -1.")
soft_margin_loss_backward = _gradient_of(
    "soft_margin_loss", kernels.soft_margin_loss_backward,
    lambda grad_output, self, target, reduction: -split_grad(
        grad_output, self._array.size, reduction) * target * (-self * target).sigmoid(),
    nondiff="target")


# ---- probabilities -------------------------------------------------------------------------------


def _bce_parts(self: Tensor, target: Tensor, weight: Tensor | None, reduction: int) -> Tensor:
    one, two = self.log().clamp_min(-100), (-self).log1p().clamp_min(-100)
    loss = -(target * one + (1 - target) * two)
    return reduce_loss(loss if weight is None else loss * weight, reduction)


def _prepare_bce(self: Tensor, target: Tensor, weight: Tensor | None, reduction: int
                 ) -> tuple[Any, ...]:
    refuse_gradient("binary_cross_entropy", "weight", weight)
    x, y = self._array, target._array
    if x.dtype != y.dtype:
        raise RuntimeError(f"Found dtype {type_name(target.dtype)} but expected "
                           f"{type_name(self.dtype)}")
    refuse(x, _REAL, "binary_cross_entropy")
    if x.shape != y.shape:
        self, target = flambeau.broadcast_tensors(self, target)
    if weight is not None:
        shape = broadcast_shapes(self._array.shape, weight._array.shape)
        if shape != self._array.shape:
            raise written_shape_error(self._array.shape, shape)
        weight = weight.expand(shape)
        if weight._array.dtype != x.dtype and weight._array.dtype.kind != "c":
            weight = weight.to(self.dtype)      # it multiplies in place
    return self, target, weight, reduction


binary_cross_entropy = op(
    "binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean) -> "
    "Tensor", kernel=kernels.binary_cross_entropy,
    checked_kernel=declining(kernels.binary_cross_entropy),
    canonical=_prepare_bce, parts=_bce_parts, **_LOSS,
    d_self=lambda grad, self, target, weight, reduction: binary_cross_entropy_backward(
        grad, self, target, weight, reduction),
    d_target=lambda grad, self, weight, reduction: _by_target(grad, self, weight, reduction),
    doc="-(y log x + (1 - y) log(1 - x)), for probabilities x, targets y.")


def _by_target(grad: Tensor, self: Tensor, weight: Tensor | None, reduction: int) -> Tensor:
    each = split_grad(grad, self._array.size, reduction) * ((-self).log1p() - self.log())
    return each if weight is None else each * weight


def _bce_backward_parts(grad_output: Tensor, self: Tensor, target: Tensor,
                        weight: Tensor | None, reduction: int) -> Tensor:
    each = split_grad(grad_output, self._array.size, reduction) * (self - target)
    each = each / ((1 - self) * self).clamp_min(1e-12)
    return each if weight is None else each * weight


binary_cross_entropy_backward = op(
    "binary_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target, "
    "Tensor? weight=None, int reduction=Mean) -> Tensor", parts=_bce_backward_parts,
    kernel=kernels.binary_cross_entropy_backward, nondiff="weight",
    checked_kernel=declining(kernels.binary_cross_entropy_backward), **_BACKWARD)


def _bce_with_logits_parts(self: Tensor, target: Tensor, weight: Tensor | None,
                           pos_weight: Tensor | None, reduction: int) -> Tensor:
    negative = flambeau.logaddexp(-self, flambeau.zeros_like(self))         # -log sigmoid(self)
    if pos_weight is not None:
        negative = (1 + (pos_weight - 1) * target) * negative
    loss = (1 - target) * self + negative
    return reduce_loss(loss if weight is None else loss * weight, reduction)


def _cast_factor(op: str, factor: Tensor, into: Tensor) -> Tensor:
    """A factor of what `op` changes in place: in the type of that."""
    if factor.dtype is into.dtype:
        return factor
    check_stored(op, into, factor._array)
    return factor.to(into.dtype)


def _prepare_bce_with_logits(self: Tensor, target: Tensor, weight: Tensor | None,
                             pos_weight: Tensor | None, reduction: int) -> tuple[Any, ...]:
    refuse_gradient("binary_cross_entropy_with_logits", "weight", weight)
    refuse_gradient("binary_cross_entropy_with_logits", "pos_weight", pos_weight)
    refuse(self._array, _REAL, "log_sigmoid_cpu")
    if self.dtype is not target.dtype:              # in place, in the type of the target
        check_stored("mul", target, self._array)
        if target.dtype.is_floating_point:
            self = self.to(target.dtype)
    shape = broadcast_shapes(self._array.shape, target._array.shape)
    if pos_weight is not None:
        broadcast_shapes(pos_weight._array.shape, shape)
        pos_weight = _cast_factor("sub", pos_weight, self)
    if weight is not None:
        broadcast_shapes(shape, weight._array.shape)
        weight = _cast_factor("mul", weight, self)
    tensors = [t if t is None or t._array.shape == shape else t.expand(shape)
               for t in (self, target, weight, pos_weight)]
    return *tensors, reduction


binary_cross_entropy_with_logits = op(
    "binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, "
    "Tensor? pos_weight=None, int reduction=Mean) -> Tensor", canonical=_prepare_bce_with_logits,
    parts=_bce_with_logits_parts,
    kernel=kernels.binary_cross_entropy_with_logits, method=False, autocast="full", out=False,
    checked_kernel=declining(kernels.binary_cross_entropy_with_logits),
    d_self=lambda grad, self, target, weight, pos_weight, reduction: _slope_of_logits(
        grad, self, target, weight, pos_weight, reduction),
    d_target=lambda grad, self, weight, pos_weight, reduction: _target_of_logits(
        grad, self, weight, pos_weight, reduction),
    doc="`binary_cross_entropy` of sigmoid(input), exact for large inputs; `pos_weight` multiplies "
        "the loss of positive targets.")


def _slope_of_logits(grad: Tensor, self: Tensor, target: Tensor, weight: Tensor | None,
                     pos_weight: Tensor | None, reduction: int) -> Tensor:
    tensors = grad, self, target, weight, pos_weight
    if not (grad_enabled() or interceptors or any(
            type(t) not in plain_types for t in tensors if t is not None)):
        return wrap(kernels.binary_cross_entropy_with_logits_backward(
            *[None if t is None else t._array for t in tensors], reduction))
    each = split_grad(grad, self._array.size, reduction)
    if pos_weight is None:
        slope = self.sigmoid() - target
    else:
        scaled = pos_weight * target
        slope = (scaled + 1 - target) * self.sigmoid() - scaled
    each = each * slope
    return each if weight is None else each * weight


def _target_of_logits(grad: Tensor, self: Tensor, weight: Tensor | None,
                      pos_weight: Tensor | None, reduction: int) -> Tensor:
    each = split_grad(grad, self._array.size, reduction)
    if pos_weight is None:
        each = each * -self
    else:
        negative = flambeau.logaddexp(-self, flambeau.zeros_like(self))
        each = each * ((pos_weight - 1) * negative - self)
    return each if weight is None else each * weight


@op("kl_div(Tensor self, Tensor target, int reduction=Mean, *, bool log_target=False) -> Tensor",
    method=False, out=False, autocast="full")
def kl_div(self: Tensor, target: Tensor, reduction: int, log_target: bool) -> Tensor:
    """target · (log target - input), for log-probabilities `input`."""
    for kinds, what in (("cW", "Complex"), ("bui", "Integral")):
        if self.dtype.kind in kinds or target.dtype.kind in kinds:
            raise RuntimeError(f"kl_div: {what} inputs not supported.")
    if log_target:
        return reduce_loss(target.exp() * (target - self), reduction)
    product = target * self                     # which fails first
    return reduce_loss(flambeau.xlogy(target, target) - product, reduction)


@op("poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, "
    "int reduction) -> Tensor", method=False, out=False, autocast="full")
def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float,
                     reduction: int) -> Tensor:
    """exp(x) - y x, or, if not `log_input`, x - y log(x + eps): Poisson likelihood of targets y."""
    product = target * (input if log_input else plus(input, eps).log())
    loss = (input.exp() if log_input else input) - product
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        loss = loss + stirling.masked_fill(target <= 1, 0)
    return reduce_loss(loss, reduction)
