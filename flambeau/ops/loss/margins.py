"""Losses by margins and distances. The functions of `nn.functional` are in `functions`."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau.core.tensor import Tensor
from flambeau.dispatch.declaration import op
from flambeau.kernels.declaration import declining
from flambeau.kernels.network import losses as kernels
from flambeau.ops.loss.distance import pairwise_distance
from flambeau.ops.loss.reduction import reduce_loss, refuse_gradient, split_grad
from flambeau.ops.node_names import minus, plus

_LOSS: dict[str, Any] = {"namespace": "_nn", "method": False, "autocast": "full"}
_MADE: dict[str, Any] = {"method": False, "out": False, "autocast": "full"}
_BACKWARD: dict[str, Any] = {"function": False, "method": False, "out": False}


@op("hinge_embedding_loss(Tensor self, Tensor target, float margin=1.0, int reduction=Mean) -> "
    "Tensor", **_MADE)
def hinge_embedding_loss(self: Tensor, target: Tensor, margin: float, reduction: int) -> Tensor:
    """x where the target is 1, max(0, margin - x) where it is -1."""
    zero = flambeau.zeros_like(self)
    margins = flambeau.full((), margin, dtype=self.dtype)
    apart = flambeau.where(target != 1, (margins - self).clamp_min(0), zero)
    return reduce_loss(apart + flambeau.where(target != -1, self, zero), reduction)


@op("cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, "
    "int reduction=Mean) -> Tensor", **_MADE)
def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float,
                          reduction: int) -> Tensor:
    """1 - cos(x₁, x₂) where the target is 1, max(0, cos(x₁, x₂) - margin) where it is -1."""
    rank = target._array.ndim
    if rank > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if input1._array.ndim != rank + 1 or input2._array.ndim != rank + 1:
        raise RuntimeError(f"{rank}D target tensor expects {rank + 1}D input tensors, but found "
                           f"inputs with sizes {list(input1._array.shape)} and "
                           f"{list(input2._array.shape)}.")
    dot = (input1 * input2).sum(rank)
    squares = plus((input1 * input1).sum(rank), 1e-12) * plus((input2 * input2).sum(rank), 1e-12)
    cos = dot / squares.sqrt()
    zero = flambeau.zeros_like(cos)
    one = flambeau.ones((), dtype=cos.dtype)
    loss = flambeau.where(target == 1, one - cos, zero) \
        + flambeau.where(target == -1, minus(cos, margin).clamp_min(0), zero)
    return reduce_loss(loss, reduction)


@op("margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, "
    "int reduction=Mean) -> Tensor", **_MADE)
def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float,
                        reduction: int) -> Tensor:
    """max(0, -target · (x₁ - x₂) + margin)."""
    apart = input1 - input2
    return reduce_loss(plus(-target * apart, float(margin)).clamp_min(0), reduction)


@op("triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, "
    "float p=2.0, float eps=1e-06, bool swap=False, int reduction=Mean) -> Tensor", **_MADE)
def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float,
                        p: float, eps: float, swap: bool, reduction: int) -> Tensor:
    """max(0, ‖a - p‖ - ‖a - n‖ + margin); with `swap`, ‖p - n‖ if that is less than ‖a - n‖."""
    a, b, c = anchor.ndim, positive.ndim, negative.ndim
    if not a == b == c:
        raise RuntimeError("The anchor, positive, and negative tensors are expected to have the "
                           f"same number of dimensions, but got: anchor {a}D, positive {b}D, and "
                           f"negative {c}D inputs")
    near = pairwise_distance(anchor, positive, p, eps)
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = flambeau.minimum(far, pairwise_distance(positive, negative, p, eps))
    return reduce_loss((plus(near, margin) - far).clamp_min(0), reduction)


# ---- of classes ----------------------------------------------------------------------------------


def _multi_margin_loss_parts(self: Tensor, target: Tensor, weight: Tensor | None, p: Any,
                             margin: Any, reduction: int) -> Tensor:
    classes = self._array.shape[-1] if self._array.ndim else 1
    rows = self.reshape(-1, classes)
    index = target.reshape(-1, 1)
    hinge = (margin - rows.gather(1, index) + rows).clamp_min(0)
    hinge = hinge if p == 1 else hinge * hinge
    if weight is not None:
        hinge = hinge * weight[index]
    own = flambeau.arange(classes, device=self.device) == index
    loss = flambeau.where(own, 0, hinge).sum(1) / classes
    return reduce_loss(loss.reshape(target._array.shape) if self._array.ndim < 2 else loss,
                       reduction)


def _check_multi_margin_loss(self: Tensor, target: Tensor, weight: Tensor | None, p: Any,
                             margin: Any, reduction: int) -> tuple[Any, ...]:
    if p not in (1, 2):
        raise RuntimeError("only p == 1 and p == 2 supported")
    kernels.check_multi_margin(self._array, target._array,
                               None if weight is None else weight._array)
    refuse_gradient("multi_margin_loss", "weight", weight)
    return self, target, weight, int(p), margin, reduction


multi_margin_loss = op(
    "multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, "
    "Tensor? weight=None, int reduction=Mean) -> Tensor", kernel=kernels.multi_margin_loss,
    checked_kernel=declining(kernels.multi_margin_loss), canonical=_check_multi_margin_loss,
    parts=_multi_margin_loss_parts, **_LOSS,
    d_self=lambda grad, self, target, weight, p, margin, reduction: multi_margin_loss_backward(
        grad, self, target, p, margin, weight, reduction),
    doc="Σ_{i ≠ t} max(0, weight[t] · (margin - x[t] + x[i]))^p / c, with p = 1 or 2.")


def _multi_margin_loss_backward_parts(grad_output: Tensor, self: Tensor, target: Tensor,
                                      weight: Tensor | None,
                                      p: Any, margin: Any, reduction: int) -> Tensor:
    classes = self._array.shape[-1] if self._array.ndim else 1
    rows, index = self.reshape(-1, classes), target.reshape(-1, 1)
    hinge = (margin - rows.gather(1, index) + rows).clamp_min(0)
    share = split_grad(grad_output, rows._array.shape[0], reduction).reshape(-1, 1) / classes
    slope = share * ((hinge > 0) if p == 1 else 2 * hinge)
    if weight is not None:
        slope = slope * weight[index]
    own = flambeau.arange(classes, device=self.device) == index
    slope = flambeau.where(own, 0, slope)
    found = flambeau.where(own, -slope.sum(1, True), slope)
    return found.to(self.dtype).reshape(self._array.shape)


multi_margin_loss_backward = op(
    "multi_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, Scalar p, "
    "Scalar margin, Tensor? weight=None, int reduction=Mean) -> Tensor",
    parts=_multi_margin_loss_backward_parts, kernel=kernels.multi_margin_loss_backward,
    checked_kernel=declining(kernels.multi_margin_loss_backward), nondiff="target weight",
    **_BACKWARD)


def _multilabel_margin_loss_parts(self: Tensor, target: Tensor, reduction: int) -> tuple[Tensor,
                                                                                         Tensor]:
    classes = self._array.shape[-1] if self._array.ndim else 1
    rows, labels = self.reshape(-1, classes), target.reshape(-1, classes)
    valid = (labels < 0).long().cumsum(1) == 0
    index = flambeau.where(valid, labels, 0)
    is_target = flambeau.zeros_like(labels).scatter_add(1, index, valid.long()) > 0
    hinge = (1 - (rows.gather(1, index).unsqueeze(2) - rows.unsqueeze(1))).clamp_min(0)
    counts = valid.unsqueeze(2) & ~is_target.unsqueeze(1)
    loss = flambeau.where(counts, hinge, 0).sum((1, 2)) / classes
    return (reduce_loss(loss.reshape(self._array.shape[:-1]), reduction),
            is_target.to(self.dtype).reshape(self._array.shape))


def _check_multilabel_margin_loss(self: Tensor, target: Tensor, reduction: int) -> tuple[Any, ...]:
    kernels.check_multilabel_margin(self._array, target._array)
    return self, target, reduction


multilabel_margin_loss_forward = op(
    "multilabel_margin_loss_forward(Tensor self, Tensor target, int reduction) -> "
    "(Tensor output, Tensor is_target)", kernel=kernels.multilabel_margin_loss_forward,
    checked_kernel=declining(kernels.multilabel_margin_loss_forward),
    canonical=_check_multilabel_margin_loss,
    parts=_multilabel_margin_loss_parts, returns=tuple, differentiable=(True, False),
    node="MultilabelMarginLossBackward0", **_BACKWARD,
    d_self=lambda grad, self, target, reduction, is_target: multilabel_margin_loss_backward(
        grad, self, target, reduction, is_target))


@op("multilabel_margin_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor", **_LOSS)
def multilabel_margin_loss(self: Tensor, target: Tensor, reduction: int) -> Tensor:
    """Σ_{j, i} max(0, 1 - (x[y_j] - x[i])) / c over target classes y_j, which end at the first -1,
    and all other classes i."""
    return multilabel_margin_loss_forward(self, target, reduction)[0]


def _multilabel_margin_loss_backward_parts(grad_output: Tensor, self: Tensor, target: Tensor,
                                           is_target: Tensor, reduction: int) -> Tensor:
    classes = self._array.shape[-1] if self._array.ndim else 1
    rows, labels = self.reshape(-1, classes), target.reshape(-1, classes)
    valid = (labels < 0).long().cumsum(1) == 0
    index = flambeau.where(valid, labels, 0)
    near = 1 - (rows.gather(1, index).unsqueeze(2) - rows.unsqueeze(1)) > 0
    counts = valid.unsqueeze(2) & (is_target.reshape(-1, classes) == 0).unsqueeze(1) & near
    share = split_grad(grad_output, rows._array.shape[0], reduction).reshape(-1, 1, 1) / classes
    slope = share * counts
    found = slope.sum(1).scatter_add(1, index, -slope.sum(2))
    return found.to(self.dtype).reshape(self._array.shape)


multilabel_margin_loss_backward = op(
    "multilabel_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction,"
    " Tensor is_target) -> Tensor", kernel=kernels.multilabel_margin_loss_backward,
    checked_kernel=declining(kernels.multilabel_margin_loss_backward),
    parts=_multilabel_margin_loss_backward_parts, nondiff="target is_target", **_BACKWARD)
