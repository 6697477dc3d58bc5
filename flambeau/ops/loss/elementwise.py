"""Losses element by element, by distance, and by margin.

`reduction` is "mean", "sum" or "none"; the old flags `size_average` and `reduce` still say it.
"""
from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

import flambeau
from flambeau import kernels
from flambeau.core.op import composite, public
from flambeau.core.promotion import type_name
from flambeau.core.shapes import broadcast_shapes
from flambeau.core.tensor import Tensor, plain
from flambeau.kernels import losses
from flambeau.kernels.refused import refuse
from flambeau.ops.fused import fused
from flambeau.ops.inplace import check_stored
from flambeau.ops.loss.cross_entropy import check_reduction, chosen
from flambeau.ops.node_names import clamped_value, minus, plus
from flambeau.ops.pointwise.arithmetic import together

NETWORK = "nn.functional"


def reduced(loss: Tensor, reduction: str) -> Tensor:
    """The mean, the sum, or the elements themselves."""
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


def _alike(input: Tensor, target: Tensor, *rest: Any) -> bool:
    """Can kernels run: one floating type, one shape?"""
    x, y = input._array, target._array
    return x.dtype == y.dtype and x.shape == y.shape and x.dtype.kind in "fV" \
        and x.dtype.itemsize > 1


def _of_one_size(input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Both broadcast (so neither promotes as a 0-d tensor does), with a warning."""
    if target.size() == input.size():
        return input, target
    warnings.warn(f"Using a target size ({target.size()}) that is different to the input size "
                  f"({input.size()}). This will likely lead to incorrect results due to "
                  "broadcasting. Please ensure they have the same size.", stacklevel=4)
    return flambeau.broadcast_tensors(input, target)


def _difference(input: Tensor, target: Tensor, name: str) -> Tensor:
    """input - target in their common type, which is to be a real floating one."""
    input, target = together(input, target)
    refuse(input._array, "bBilUcW8", name)
    return input - target


def elementwise(name: str, value: Any, gradient: Any, node_name: str,
                extra: tuple[str, ...] = (), nondiff: tuple[str, ...] = ()) -> Any:
    """A loss of (input, target, *numbers, reduction): declares the `fused` op that decorates its
    body. `value` and `gradient`, the derivative by the input times its first argument, are array
    functions; that by the target is -gradient."""
    def kernel(input: np.ndarray, target: np.ndarray, *rest: Any) -> np.ndarray:
        return losses.fold(value(input, target, *rest[:-1]), rest[-1])

    def grads(grad: np.ndarray, needs: Any, input: np.ndarray, target: np.ndarray,
              *rest: Any) -> Any:
        g = gradient(losses.share(grad, input.size, rest[-1]), input, target, *rest[:-1])
        return g if needs[0] else None, kernels.negative(g) if needs[1] else None

    backward = {
        0: lambda grad, needs, input, target, reduction: grads(
            grad, needs, input, target, reduction),
        1: lambda grad, needs, input, target, limit, reduction: grads(
            grad, needs, input, target, limit, reduction)}[len(extra)]
    return fused(kernel, backward=backward, when=_alike, tensors=("input", "target"),
                 namespace=None, name=name, node_name=node_name, nondiff=nondiff)


# ---- distances of elements -----------------------------------------------------------------------


def _squared(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return kernels.square(kernels.subtract(x, y))


@elementwise("_mse_loss", _squared, lambda grad, x, y: kernels.multiply(grad, kernels.multiply(
    kernels.subtract(x, y), np.asarray(2, x.dtype))), "MseLossBackward0")
def _mse(input: Tensor, target: Tensor, reduction: str) -> Tensor:
    difference = _difference(input, target, "mse_cpu")
    return reduced(difference * difference, reduction)


def _weighted(loss: Tensor, weight: Tensor, input: Tensor, reduction: str) -> Tensor:
    if weight.size() != input.size():
        raise ValueError("Weights and input must have the same size.")
    loss = loss * weight
    return loss.sum() / weight.sum() if reduction == "mean" else reduced(loss, reduction)


@composite(namespace=NETWORK)
def mse_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None,
             reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """(input - target)², times `weight` if given (the mean is then the weighted one).

    >>> import flambeau
    >>> flambeau.nn.functional.mse_loss(flambeau.tensor([1.0, 3.0]), flambeau.zeros(2))
    tensor(5.)
    """
    reduction = chosen(reduction, size_average, reduce)
    input, target = _of_one_size(input, target)
    if weight is not None:
        return _weighted(_difference(input, target, "mse_cpu") ** 2, weight, input, reduction)
    return _mse(input, target, reduction)


@composite(namespace=NETWORK)
def l1_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None,
            reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """|input - target|, times `weight` if given (the mean is then the weighted one)."""
    reduction = chosen(reduction, size_average, reduce)
    input, target = _of_one_size(input, target)
    loss = (input - target).abs()
    if weight is not None:
        return _weighted(loss, weight, input, reduction)
    return reduced(loss, reduction)


@elementwise("_smooth_l1_loss", kernels.smooth_l1, kernels.smooth_l1_backward,
             "SmoothL1LossBackward0", ("beta",))
def _smooth_l1(input: Tensor, target: Tensor, limit: float, reduction: str) -> Tensor:
    difference = _difference(input, target, "smooth_l1_cpu")
    distance = difference.abs()
    near = difference * difference * (0.5 / limit if limit else 0.5)
    return reduced(flambeau.where(distance < limit, near, distance - 0.5 * limit), reduction)


@composite(namespace=NETWORK)
def smooth_l1_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None,
                   reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """½ d² / beta where d = |input - target| is below `beta`, else d - ½ beta."""
    reduction = chosen(reduction, size_average, reduce)
    input, target = _of_one_size(input, target)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    if beta == 0:
        return l1_loss(input, target, None, None, reduction)
    return _smooth_l1(input, target, beta, reduction)


@elementwise("_huber_loss", kernels.huber, kernels.huber_backward, "HuberLossBackward0", ("delta",))
def _huber(input: Tensor, target: Tensor, limit: float, reduction: str) -> Tensor:
    """In the common type, and then in that of the input."""
    both = [t._array for t in together(input, target)]
    check_stored("huber_loss", input, np.broadcast_to(both[1], broadcast_shapes(
        *[array.shape for array in both])))
    difference = _difference(input, target, "huber_cpu")
    distance = difference.abs()
    far = (distance - 0.5 * limit) * limit
    loss = flambeau.where(distance < limit, difference * difference * 0.5, far)
    return reduced(loss.to(input.dtype), reduction)


@composite(namespace=NETWORK)
def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0,
               weight: Tensor | None = None) -> Tensor:
    """½ d² where d = |input - target| is below `delta`, else delta · (d - ½ delta); times `weight`
    if given (the mean is still that of all)."""
    check_reduction(reduction)
    input, target = _of_one_size(input, target)
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    if weight is not None:
        loss = _weighted(_huber(input, target, delta, "none"), weight, input, "none")
        return reduced(loss, reduction)         # by their number, unlike the others
    return _huber(input, target, delta, reduction)


# ---- probabilities -------------------------------------------------------------------------------


@fused(losses.binary_cross_entropy,
       backward=lambda grad, needs, input, target, weight, reduction: (
           *losses.binary_cross_entropy_backward(grad, input, target, weight, reduction, needs),
           None),
       tensors=("input", "target", "weight"), namespace=None, name="_binary_cross_entropy",
       node_name="BinaryCrossEntropyBackward0", nondiff=("weight",))
def _bce(input: Tensor, target: Tensor, weight: Any, reduction: str) -> Tensor:
    one, two = input.log().clamp_min(-100), (-input).log1p().clamp_min(-100)
    loss = -(target * one + (1 - target) * two)
    return reduced(loss if weight is None else loss * weight, reduction)


@composite(namespace=NETWORK)
def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None,
                         size_average: Any = None, reduce: Any = None,
                         reduction: str = "mean") -> Tensor:
    """-(y log x + (1 - y) log(1 - x)), for probabilities x, targets y; logarithms stop at -100."""
    reduction = chosen(reduction, size_average, reduce)
    if target._array.shape != input._array.shape:
        raise ValueError(f"Using a target size ({target.size()}) that is different to the input "
                         f"size ({input.size()}) is deprecated. Please ensure they have the same "
                         "size.")
    x, y = input._array, target._array
    if weight is not None:
        shape = broadcast_shapes(y.shape, weight._array.shape)
        if shape != y.shape:
            raise RuntimeError(f"output with shape {list(y.shape)} doesn't match the broadcast "
                               f"shape {list(shape)}")
        weight = weight.expand(shape)
    if x.dtype != y.dtype:
        raise RuntimeError(f"Found dtype {type_name(target.dtype)} but expected "
                           f"{type_name(input.dtype)}")
    refuse(x, "bBilUcW8", "binary_cross_entropy")
    return _bce(input, target, weight, reduction)


@fused(losses.binary_cross_entropy_with_logits,
       backward=lambda grad, needs, input, target, weight, pos_weight, reduction: (
           *losses.binary_cross_entropy_with_logits_backward(
               grad, input, target, weight, pos_weight, reduction, needs), None, None),
       tensors=("input", "target", "weight", "pos_weight"), namespace=None,
       nondiff=("weight", "pos_weight"), name="_binary_cross_entropy_with_logits",
       node_name="BinaryCrossEntropyWithLogitsBackward0",
       when=lambda input, target, weight, pos_weight, reduction: _alike(input, target)
       and not _tracked(weight) and not _tracked(pos_weight))
def _bce_with_logits(input: Tensor, target: Tensor, weight: Any, pos_weight: Any,
                     reduction: str) -> Tensor:
    negative = flambeau.logaddexp(-input, flambeau.zeros_like(input))       # -log sigmoid(input)
    if pos_weight is None:
        loss = (1 - target) * input + negative
    else:
        loss = (1 - target) * input + (1 + (pos_weight - 1) * target) * negative
    return reduced(loss if weight is None else loss * weight, reduction)


def _tracked(tensor: Any) -> bool:
    return tensor is not None and tensor._edge is not None


@composite(namespace=NETWORK)
def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = None,
                                     size_average: Any = None, reduce: Any = None,
                                     reduction: str = "mean",
                                     pos_weight: Tensor | None = None) -> Tensor:
    """`binary_cross_entropy` of sigmoid(input), exact for large inputs; `pos_weight` multiplies the
    loss of positive targets.

    >>> import flambeau
    >>> x, y = flambeau.zeros(2), flambeau.tensor([0.0, 1.0])
    >>> flambeau.nn.functional.binary_cross_entropy_with_logits(x, y)
    tensor(0.6931)
    """
    reduction = chosen(reduction, size_average, reduce)
    if target.size() != input.size():
        raise ValueError(f"Target size ({target.size()}) must be the same as input size "
                         f"({input.size()})")
    for factor in (weight, pos_weight):
        if factor is not None:
            broadcast_shapes(factor._array.shape, input._array.shape)
    refuse(input._array, "bBilUcW8", "log_sigmoid_cpu")
    if input.dtype is target.dtype:
        return _bce_with_logits(input, target, weight, pos_weight, reduction)
    negative, rest = flambeau.logaddexp(-input, flambeau.zeros_like(input)), 1 - target
    check_stored("mul", target, input._array)       # in place, in the type of the target
    if pos_weight is not None:
        negative = (1 + (pos_weight - 1) * target) * negative
    loss = (rest * input).to(target.dtype) + negative
    check_stored("sub", target, loss._array)
    loss = loss.to(target.dtype)
    return reduced(loss if weight is None else loss * weight, reduction)


@composite(name="binary_cross_entropy_with_logits")
def _bce_with_logits_by_number(input: Tensor, target: Tensor, weight: Tensor | None = None,
                               pos_weight: Tensor | None = None, reduction: int = 0) -> Tensor:
    """`nn.functional.binary_cross_entropy_with_logits` with reductions as numbers: 0 for none, 1
    for the mean, 2 for the sum."""
    return binary_cross_entropy_with_logits(input, target, weight, pos_weight=pos_weight,
                                            reduction=("none", "mean", "sum")[reduction])


def _kl_div(input: Tensor, target: Tensor, log_target: bool) -> Tensor:
    for kinds, what in (("cW", "Complex"), ("bui", "Integral")):
        if input._array.dtype.kind in kinds or target._array.dtype.kind in kinds:
            raise RuntimeError(f"kl_div: {what} inputs not supported.")
    if log_target:
        return target.exp() * (target - input)
    return flambeau.xlogy(target, target) - target * input


@composite(namespace=NETWORK)
def kl_div(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None,
           reduction: str = "mean", log_target: bool = False) -> Tensor:
    """target · (log target - input), for log-probabilities `input`.

    "batchmean" divides by the batch. `log_target`: the target holds log-probabilities too.
    """
    if size_average is not None or reduce is not None:
        reduction = chosen(reduction, size_average, reduce)
    elif reduction == "mean":
        warnings.warn("reduction: 'mean' divides the total loss by both the batch size and the "
                      "support size.'batchmean' divides only by the batch size, and aligns with "
                      "the "
                      "KL div math definition.'mean' will be changed to behave the same as "
                      "'batchmean' in the next major release.", stacklevel=2)
    loss = _kl_div(input, target, log_target)
    if reduction == "batchmean":
        loss = loss.sum()
        return loss / input.size(0) if input.dim() else loss
    return reduced(loss, check_reduction(reduction))


@composite(namespace=NETWORK)
def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool = True, full: bool = False,
                     size_average: Any = None, eps: float = 1e-8, reduce: Any = None,
                     reduction: str = "mean") -> Tensor:
    """exp(x) - y x, or, if not `log_input`, x - y log(x + eps): Poisson likelihood of targets y.

    `full` adds Stirling's approximation of log(y!).
    """
    reduction = chosen(reduction, size_average, reduce)
    loss = input.exp() - target * input if log_input \
        else input - target * plus(input, eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        loss = loss + stirling.masked_fill(target <= 1, 0)
    return reduced(loss, reduction)


@composite(namespace=NETWORK)
def gaussian_nll_loss(input: Tensor, target: Tensor, var: Any, full: bool = False,
                      eps: float = 1e-6, reduction: str = "mean") -> Tensor:
    """½ (log v + (input - target)² / v) with v = max(var, eps); `full` adds ½ log(2π)."""
    if isinstance(var, float):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = var * flambeau.ones_like(input)
    elif type(var) in plain and (var < 0).any():        # of examples under vmap nobody knows
        raise ValueError("var has negative entry/entries")
    if var.size() != input.size():
        if input.size()[:-1] == var.size():
            var = var.unsqueeze(-1)
        elif input.ndim != var.ndim or sum(
                m for n, m in zip(input.size(), var.size(), strict=True) if n != m) != 1:
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    var = clamped_value(var, eps)
    loss = 0.5 * (var.log() + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduced(loss, reduction)


# ---- margins -------------------------------------------------------------------------------------


@composite(namespace=NETWORK)
def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0,
                         size_average: Any = None, reduce: Any = None,
                         reduction: str = "mean") -> Tensor:
    """x where the target is 1, max(0, margin - x) where it is -1."""
    reduction = chosen(reduction, size_average, reduce)
    return _hinge_embedding(input, target, margin, reduction)


def _hinge_embedding(input: Tensor, target: Tensor, margin: float, reduction: str) -> Tensor:
    zero = flambeau.zeros_like(input)
    margins = flambeau.full((), margin, dtype=input.dtype)
    apart = flambeau.where(target != 1, (margins - input).clamp_min(0), zero)
    return reduced(apart + flambeau.where(target != -1, input, zero), reduction)


@composite(namespace=NETWORK)
def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0,
                          size_average: Any = None, reduce: Any = None,
                          reduction: str = "mean") -> Tensor:
    """1 - cos(x₁, x₂) where the target is 1, max(0, cos(x₁, x₂) - margin) where it is -1."""
    reduction = chosen(reduction, size_average, reduce)
    return _cosine_embedding(input1, input2, target, margin, reduction)


def _cosine_embedding(input1: Tensor, input2: Tensor, target: Tensor, margin: float,
                      reduction: str) -> Tensor:
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
    return reduced(loss, reduction)


@composite(namespace=NETWORK)
def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0,
                        size_average: Any = None, reduce: Any = None,
                        reduction: str = "mean") -> Tensor:
    """max(0, -target · (x₁ - x₂) + margin)."""
    reduction = chosen(reduction, size_average, reduce)
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError("margin_ranking_loss : All input tensors should have same dimension but "
                           f"got sizes: input1: {input1.size()}, input2: {input2.size()}, target: "
                           f"{target.size()} ")
    difference = input1 - input2
    return reduced(plus(-target * difference, float(margin)).clamp_min(0), reduction)


@elementwise("_soft_margin_loss", losses.soft_margin, lambda grad, x, y: kernels.multiply(
    grad, losses.soft_margin_slope(x, y)), "SoftMarginLossBackward0", nondiff=("target",))
def _soft_margin(input: Tensor, target: Tensor, reduction: str) -> Tensor:
    """Each step is stored in the type of the input."""
    product = -input * target
    check_stored("mul", input, product._array)
    product = product.to(input.dtype)
    loss = product.exp()
    check_stored("exp", input, loss._array)
    return reduced(loss.log1p(), reduction)


@composite(namespace=NETWORK)
def soft_margin_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None,
                     reduction: str = "mean") -> Tensor:
    """log(1 + exp(-target · x)) for targets 1 and -1."""
    reduction = chosen(reduction, size_average, reduce)
    if _tracked(target):                            # the slope by the target is another
        return _soft_margin.op.body(input, target, reduction)
    return _soft_margin(input, target, reduction)


@composite(namespace=NETWORK)
def multilabel_soft_margin_loss(input: Tensor, target: Tensor, weight: Tensor | None = None,
                                size_average: Any = None, reduce: Any = None,
                                reduction: str = "mean") -> Tensor:
    """-(y log σ(x) + (1 - y) log σ(-x)), averaged over the classes (the last dimension)."""
    reduction = chosen(reduction, size_average, reduce)
    functional = public[NETWORK]
    logsigmoid = functional["logsigmoid"]
    loss = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    return reduced(loss.sum(-1) / input.size(-1), reduction)


@composite(namespace=NETWORK)
def multi_margin_loss(input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0,
                      weight: Tensor | None = None, size_average: Any = None, reduce: Any = None,
                      reduction: str = "mean") -> Tensor:
    """Σ_{i ≠ t} max(0, weight[t] · (margin - x[t] + x[i]))^p / c, with p = 1 or 2."""
    reduction = chosen(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    return _multi_margin(input, target, weight, p, margin, reduction)


@fused(losses.multi_margin_loss,
       backward=lambda grad, input, target, weight, p, margin, reduction: (
           losses.multi_margin_loss_backward(grad, input, target, weight, p, margin, reduction),
           None, None),
       tensors=("input", "target", "weight"), nondiff=("target", "weight"), namespace=None,
       name="_multi_margin_loss", node_name="MultiMarginLossBackward0")
def _multi_margin(input: Tensor, target: Tensor, weight: Any, p: int, margin: float,
                  reduction: str) -> Tensor:
    losses.check_multi_margin(input._array, target._array,
                              None if weight is None else weight._array)
    classes = input._array.shape[-1] if input._array.ndim else 1
    rows = input.reshape(-1, classes)
    index = target.reshape(-1, 1)
    hinge = (margin - rows.gather(1, index) + rows).clamp_min(0)
    hinge = hinge if p == 1 else hinge * hinge
    if weight is not None:
        hinge = hinge * weight[index]
    own = flambeau.arange(classes) == index
    loss = flambeau.where(own, 0, hinge).sum(1) / classes
    return reduced(loss.reshape(target._array.shape) if input._array.ndim < 2 else loss, reduction)


@composite(namespace=NETWORK)
def multilabel_margin_loss(input: Tensor, target: Tensor, size_average: Any = None,
                           reduce: Any = None, reduction: str = "mean") -> Tensor:
    """Σ_{j, i} max(0, 1 - (x[y_j] - x[i])) / c over target classes y_j, which end at the first -1,
    and all other classes i."""
    reduction = chosen(reduction, size_average, reduce)
    return _multilabel_margin(input, target, reduction)


@fused(losses.multilabel_margin_loss,
       backward=lambda grad, input, target, reduction: (
           losses.multilabel_margin_loss_backward(grad, input, target, reduction), None),
       tensors=("input", "target"), nondiff=("target",), namespace=None,
       name="_multilabel_margin_loss", node_name="MultilabelMarginLossBackward0")
def _multilabel_margin(input: Tensor, target: Tensor, reduction: str) -> Tensor:
    losses.check_multilabel_margin(input._array, target._array)
    classes = input._array.shape[-1] if input._array.ndim else 1
    rows, labels = input.reshape(-1, classes), target.reshape(-1, classes)
    valid = (labels < 0).long().cumsum(1) == 0
    index = flambeau.where(valid, labels, 0)
    is_target = flambeau.zeros_like(labels).scatter_add(1, index, valid.long()) > 0
    hinge = (1 - (rows.gather(1, index).unsqueeze(2) - rows.unsqueeze(1))).clamp_min(0)
    counts = valid.unsqueeze(2) & ~is_target.unsqueeze(1)
    loss = flambeau.where(counts, hinge, 0).sum((1, 2)) / classes
    shape = input._array.shape[:-1]
    return reduced(loss.reshape(shape), reduction)


# ---- triplets ------------------------------------------------------------------------------------


def _check_triplet(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float) -> None:
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    a, p, n = anchor.ndim, positive.ndim, negative.ndim
    if not a == p == n:
        raise RuntimeError("The anchor, positive, and negative tensors are expected to have the "
                           f"same number of dimensions, but got: anchor {a}D, positive {p}D, and "
                           f"negative {n}D inputs")


@composite(namespace=NETWORK)
def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0,
                        p: float = 2, eps: float = 1e-6, swap: bool = False,
                        size_average: Any = None, reduce: Any = None,
                        reduction: str = "mean") -> Tensor:
    """max(0, ‖a - p‖ - ‖a - n‖ + margin); with `swap`, ‖p - n‖ if that is less than ‖a - n‖.

    Balntas et al., Learning shallow convolutional feature descriptors with triplet losses, 2016.
    """
    reduction = chosen(reduction, size_average, reduce)
    _check_triplet(anchor, positive, negative, margin)
    distance = public[NETWORK]["pairwise_distance"]
    return _triplet(anchor, positive, negative, lambda a, b: distance(a, b, p, eps),
                    lambda near: plus(near, margin), swap, reduction)


def _triplet(anchor: Tensor, positive: Tensor, negative: Tensor, distance: Any, farther: Any,
             swap: bool, reduction: str) -> Tensor:
    """`farther` adds the margin."""
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = flambeau.minimum(far, distance(positive, negative))
    return reduced((farther(near) - far).clamp_min(0), reduction)


@composite(namespace=NETWORK)
def triplet_margin_with_distance_loss(anchor: Tensor, positive: Tensor, negative: Tensor, *,
                                      distance_function: Any = None, margin: float = 1.0,
                                      swap: bool = False, reduction: str = "mean") -> Tensor:
    """`triplet_margin_loss` with any distance."""
    check_reduction(reduction)
    _check_triplet(anchor, positive, negative, margin)
    if distance_function is None:
        distance_function = public[NETWORK]["pairwise_distance"]
    return _triplet(anchor, positive, negative, distance_function, lambda near: margin + near, swap,
                    reduction)


# ---- torch's own forms ---------------------------------------------------------------------------

_REDUCTIONS = ("none", "mean", "sum")


def _as_op(name: str, function: Any) -> None:
    """The function at torch's top level, whose `reduction` is a number."""
    def op(*args: Any, reduction: int = 1, **kwargs: Any) -> Tensor:
        return function(*args, reduction=_REDUCTIONS[reduction], **kwargs)

    op.__doc__ = f"`nn.functional.{name}` with the reduction as a number: 0 none, 1 mean, 2 sum."
    composite(op, name=name)


for _name in ("hinge_embedding_loss", "cosine_embedding_loss", "margin_ranking_loss",
              "triplet_margin_loss"):
    _as_op(_name, public[NETWORK][_name])


@composite(name="kl_div")
def kl_div_op(input: Tensor, target: Tensor, reduction: int = 1, *,
              log_target: bool = False) -> Tensor:
    """`nn.functional.kl_div` with the reduction as a number: 0 none, 1 mean, 2 sum."""
    return reduced(_kl_div(input, target, log_target), _REDUCTIONS[reduction])


@composite(name="poisson_nll_loss")
def poisson_nll_loss_op(input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float,
                        reduction: int) -> Tensor:
    """`nn.functional.poisson_nll_loss` with the reduction as a number: 0 none, 1 mean, 2 sum."""
    return poisson_nll_loss(input, target, log_input, full, None, eps, None, _REDUCTIONS[reduction])
