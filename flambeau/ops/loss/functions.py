"""The losses of `nn.functional`.

`reduction` is "mean", "sum" or "none"; the old flags `size_average` and `reduce` still say it.
"""
from __future__ import annotations

import math
import warnings
from typing import Any

import flambeau
from flambeau.core.tensor import Tensor, plain_types
from flambeau.dispatch.python_functions import python_function
from flambeau.ops.loss import cross_entropy as classes
from flambeau.ops.loss import elementwise, margins
from flambeau.ops.loss.distance import pairwise_distance
from flambeau.ops.loss.reduction import (
    MEAN,
    NUMBERS,
    name_of,
    number_of,
    reduce_loss,
    refuse_gradient,
)
from flambeau.ops.nn.activation import log_sigmoid
from flambeau.ops.node_names import clamped_value

NETWORK = "nn.functional"


# ---- element by element --------------------------------------------------------------------------


def _of_one_size(input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Both broadcast (so neither promotes as a 0-d tensor does), with a warning."""
    if target.size() == input.size():
        return input, target
    warnings.warn(f"Using a target size ({target.size()}) that is different to the input size "
                  f"({input.size()}). This will likely lead to incorrect results due to "
                  "broadcasting. Please ensure they have the same size.", stacklevel=3)
    input, target = flambeau.broadcast_tensors(input, target)
    return input, target


def _apply_weight(loss: Tensor, weight: Tensor, input: Tensor, reduction: int) -> Tensor:
    if weight.size() != input.size():
        raise ValueError("Weights and input must have the same size.")
    loss = loss * weight
    return loss.sum() / weight.sum() if reduction == MEAN else reduce_loss(loss, reduction)


def _reduction_number(reduction: Any, size_average: Any, reduce: Any, said: str = "valid") -> int:
    """The number of a reduction, for losses that refuse others in words of their own."""
    if size_average is None and reduce is None and reduction not in [*NUMBERS]:
        raise ValueError(reduction + f" is not {said}")
    return number_of(reduction, size_average, reduce)


@python_function(namespace=NETWORK)
def mse_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None,
             reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """(input - target)², times `weight` if given (the mean is then the weighted one).

    >>> import flambeau
    >>> flambeau.nn.functional.mse_loss(flambeau.tensor([1.0, 3.0]), flambeau.zeros(2))
    tensor(5.)
    """
    reduction = name_of(reduction, size_average, reduce)
    input, target = _of_one_size(input, target)
    number = number_of(reduction)
    if weight is not None:
        return _apply_weight((input - target) ** 2, weight, input, number)
    return elementwise.mse_loss(input, target, number)


@python_function(namespace=NETWORK)
def l1_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None,
            reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """|input - target|, times `weight` if given (the mean is then the weighted one)."""
    reduction = name_of(reduction, size_average, reduce)
    input, target = _of_one_size(input, target)
    number = number_of(reduction)
    if weight is not None:
        return _apply_weight((input - target).abs(), weight, input, number)
    return elementwise.l1_loss(input, target, number)


@python_function(namespace=NETWORK)
def smooth_l1_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None,
                   reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """½ d² / beta where d = |input - target| is below `beta`, else d - ½ beta."""
    reduction = name_of(reduction, size_average, reduce)
    input, target = _of_one_size(input, target)
    number = number_of(reduction)
    if beta == 0.0:
        return elementwise.l1_loss(input, target, number)
    return elementwise.smooth_l1_loss(input, target, number, beta)


@python_function(namespace=NETWORK)
def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0,
               weight: Tensor | None = None) -> Tensor:
    """½ d² where d = |input - target| is below `delta`, else delta · (d - ½ delta); times `weight`
    if given (the mean is still that of all)."""
    input, target = _of_one_size(input, target)
    number = number_of(reduction)
    if weight is not None:
        loss = elementwise.huber_loss(input, target, 0, delta)
        return reduce_loss(_apply_weight(loss, weight, input, 0), number)   # by their number
    return elementwise.huber_loss(input, target, number, delta)


@python_function(namespace=NETWORK)
def soft_margin_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None,
                     reduction: str = "mean") -> Tensor:
    """log(1 + exp(-target · x)) for targets 1 and -1."""
    number = number_of(reduction, size_average, reduce)
    refuse_gradient("soft_margin_loss", "target", target)
    return elementwise.soft_margin_loss(input, target, number)


# ---- probabilities -------------------------------------------------------------------------------


@python_function(namespace=NETWORK)
def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None,
                         size_average: Any = None, reduce: Any = None,
                         reduction: str = "mean") -> Tensor:
    """-(y log x + (1 - y) log(1 - x)), for probabilities x, targets y; logarithms stop at -100."""
    number = number_of(reduction, size_average, reduce)
    if target.size() != input.size():
        raise ValueError(f"Using a target size ({target.size()}) that is different to the input "
                         f"size ({input.size()}) is deprecated. Please ensure they have the same "
                         "size.")
    if weight is not None:
        refuse_gradient("binary_cross_entropy", "weight", weight)
        size = flambeau.broadcast_shapes(target.size(), weight.size())
        weight = weight.expand(size)
    return elementwise.binary_cross_entropy(input, target, weight, number)


@python_function(namespace=NETWORK)
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
    number = number_of(reduction, size_average, reduce)
    if target.size() != input.size():
        raise ValueError(f"Target size ({target.size()}) must be the same as input size "
                         f"({input.size()})")
    if weight is not None or pos_weight is not None:
        refuse_gradient("binary_cross_entropy_with_logits", "weight", weight)
        refuse_gradient("binary_cross_entropy_with_logits", "pos_weight", pos_weight)
    return elementwise.binary_cross_entropy_with_logits(input, target, weight, pos_weight, number)


@python_function(namespace=NETWORK)
def kl_div(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None,
           reduction: str = "mean", log_target: bool = False) -> Tensor:
    """target · (log target - input), for log-probabilities `input`.

    "batchmean" divides by the batch. `log_target`: the target holds log-probabilities too.
    """
    if size_average is not None or reduce is not None:
        number = number_of(reduction, size_average, reduce)
    else:
        if reduction == "mean":
            warnings.warn("reduction: 'mean' divides the total loss by both the batch size and "
                          "the support size.'batchmean' divides only by the batch size, and "
                          "aligns with the KL div math definition.'mean' will be changed to "
                          "behave the same as 'batchmean' in the next major release.",
                          stacklevel=2)
        number = number_of("sum" if reduction == "batchmean" else reduction)
    loss = elementwise.kl_div(input, target, number, log_target=log_target)
    if reduction == "batchmean" and input.dim() != 0:
        loss = loss / input.size()[0]
    return loss


@python_function(namespace=NETWORK)
def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool = True, full: bool = False,
                     size_average: Any = None, eps: float = 1e-8, reduce: Any = None,
                     reduction: str = "mean") -> Tensor:
    """exp(x) - y x, or, if not `log_input`, x - y log(x + eps): Poisson likelihood of targets y.

    `full` adds Stirling's approximation of log(y!).
    """
    number = _reduction_number(reduction, size_average, reduce, "a valid value for reduction")
    return elementwise.poisson_nll_loss(input, target, log_input, full, eps, number)


@python_function(namespace=NETWORK)
def gaussian_nll_loss(input: Tensor, target: Tensor, var: Any, full: bool = False,
                      eps: float = 1e-6, reduction: str = "mean") -> Tensor:
    """½ (log v + (input - target)² / v) with v = max(var, eps); `full` adds ½ log(2π)."""
    if isinstance(var, float):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = var * flambeau.ones_like(input)
    elif (type(var) in plain_types or not isinstance(var, Tensor)) and (var < 0).any():
        raise ValueError("var has negative entry/entries")
    if var.size() != input.size():
        if input.size()[:-1] == var.size():
            var = var.unsqueeze(-1)
        elif input.ndim != var.ndim or sum(
                m for n, m in zip(input.size(), var.size(), strict=True) if n != m) != 1:
            raise ValueError("var is of incorrect size")
    number = _reduction_number(reduction, None, None)
    var = clamped_value(var, eps)
    loss = 0.5 * (var.log() + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduce_loss(loss, number)


# ---- margins -------------------------------------------------------------------------------------


@python_function(namespace=NETWORK)
def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0,
                         size_average: Any = None, reduce: Any = None,
                         reduction: str = "mean") -> Tensor:
    """x where the target is 1, max(0, margin - x) where it is -1."""
    number = number_of(reduction, size_average, reduce)
    return margins.hinge_embedding_loss(input, target, margin, number)


@python_function(namespace=NETWORK)
def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0,
                          size_average: Any = None, reduce: Any = None,
                          reduction: str = "mean") -> Tensor:
    """1 - cos(x₁, x₂) where the target is 1, max(0, cos(x₁, x₂) - margin) where it is -1."""
    number = number_of(reduction, size_average, reduce)
    return margins.cosine_embedding_loss(input1, input2, target, margin, number)


@python_function(namespace=NETWORK)
def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0,
                        size_average: Any = None, reduce: Any = None,
                        reduction: str = "mean") -> Tensor:
    """max(0, -target · (x₁ - x₂) + margin)."""
    number = number_of(reduction, size_average, reduce)
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError("margin_ranking_loss : All input tensors should have same dimension but "
                           f"got sizes: input1: {input1.size()}, input2: {input2.size()}, target: "
                           f"{target.size()} ")
    return margins.margin_ranking_loss(input1, input2, target, margin, number)


@python_function(namespace=NETWORK)
def multilabel_soft_margin_loss(input: Tensor, target: Tensor, weight: Tensor | None = None,
                                size_average: Any = None, reduce: Any = None,
                                reduction: str = "mean") -> Tensor:
    """-(y log σ(x) + (1 - y) log σ(-x)), averaged over the classes (the last dimension)."""
    loss = -(target * log_sigmoid(input) + (1 - target) * log_sigmoid(-input))
    number = _reduction_number(reduction, size_average, reduce)
    if weight is not None:
        loss = loss * weight
    return reduce_loss(loss.sum(-1) / input.size(-1), number)


@python_function(namespace=NETWORK)
def multi_margin_loss(input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0,
                      weight: Tensor | None = None, size_average: Any = None, reduce: Any = None,
                      reduction: str = "mean") -> Tensor:
    """Σ_{i ≠ t} max(0, weight[t] · (margin - x[t] + x[i]))^p / c, with p = 1 or 2."""
    number = number_of(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    if weight is not None:
        refuse_gradient("multi_margin_loss", "weight", weight)
    return margins.multi_margin_loss(input, target, p, margin, weight, number)


@python_function(namespace=NETWORK)
def multilabel_margin_loss(input: Tensor, target: Tensor, size_average: Any = None,
                           reduce: Any = None, reduction: str = "mean") -> Tensor:
    """Σ_{j, i} max(0, 1 - (x[y_j] - x[i])) / c over target classes y_j, which end at the first -1,
    and all other classes i."""
    return margins.multilabel_margin_loss(
        input, target, number_of(reduction, size_average, reduce))


# ---- triplets ------------------------------------------------------------------------------------


@python_function(namespace=NETWORK)
def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0,
                        p: float = 2, eps: float = 1e-6, swap: bool = False,
                        size_average: Any = None, reduce: Any = None,
                        reduction: str = "mean") -> Tensor:
    """max(0, ‖a - p‖ - ‖a - n‖ + margin); with `swap`, ‖p - n‖ if that is less than ‖a - n‖.

    Balntas et al., Learning shallow convolutional feature descriptors with triplet losses, 2016.
    """
    number = number_of(reduction, size_average, reduce)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return margins.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, number)


@python_function(namespace=NETWORK)
def triplet_margin_with_distance_loss(anchor: Tensor, positive: Tensor, negative: Tensor, *,
                                      distance_function: Any = None, margin: float = 1.0,
                                      swap: bool = False, reduction: str = "mean") -> Tensor:
    """`triplet_margin_loss` with any distance."""
    number = number_of(reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    a, p, n = anchor.ndim, positive.ndim, negative.ndim
    if not a == p == n:
        raise RuntimeError("The anchor, positive, and negative tensors are expected to have the "
                           f"same number of dimensions, but got: anchor {a}D, positive {p}D, and "
                           f"negative {n}D inputs")
    distance = distance_function or pairwise_distance
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = flambeau.minimum(far, distance(positive, negative))
    return reduce_loss((margin + near - far).clamp_min(0), number)


# ---- classes -------------------------------------------------------------------------------------


@python_function(namespace=NETWORK)
def nll_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None,
             ignore_index: int = -100, reduce: Any = None, reduction: str = "mean") -> Tensor:
    """-weight[t] · input[t], for log-probabilities `input` (n, c, ...) and classes t (n, ...).

    Targets equal to `ignore_index` do not count; the mean is over the weights of those that do.
    """
    number = number_of(reduction, size_average, reduce)
    if weight is not None:
        refuse_gradient("nll_loss_forward", "weight", weight)
    return classes.nll_loss_nd(input, target, weight, number, ignore_index)


@python_function(namespace=NETWORK)
def cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None,
                  size_average: Any = None, ignore_index: int = -100, reduce: Any = None,
                  reduction: str = "mean", label_smoothing: float = 0.0) -> Tensor:
    """-weight[t] · log_softmax(input)[t], for `input` (n, c, ...), (c) and classes t (n, ...), ().

    A floating `target` of the shape of `input` holds a distribution over the classes instead.
    Classes equal to `ignore_index` do not count; the mean is over the weights of those that do.
    `label_smoothing` mixes the target with the uniform distribution (Szegedy et al., 2016).

    >>> import flambeau
    >>> flambeau.nn.functional.cross_entropy(flambeau.zeros(1, 2), flambeau.tensor([1]))
    tensor(0.6931)
    """
    number = number_of(reduction, size_average, reduce)
    if weight is not None:
        refuse_gradient("nll_loss_forward", "weight", weight)
    return classes.cross_entropy_loss(input, target, weight, number, ignore_index,
                                      label_smoothing)


@python_function(namespace=NETWORK)
def linear_cross_entropy(input: Tensor, linear_weight: Tensor, target: Tensor, *,
                         linear_bias: Tensor | None = None, weight: Tensor | None = None,
                         reduction: str = "mean", ignore_index: int | None = None,
                         label_smoothing: float = 0.0, options: Any = None) -> Tensor:
    """`cross_entropy` of the affine map of `input` (n, k) or (k) by `linear_weight` (c, …, k).

    With more dimensions in the middle of `linear_weight` there are as many losses per sample.
    """
    classes.check_affine(input, linear_weight, linear_bias)
    batch, kinds = tuple(input.shape[:-1]), tuple(linear_weight.shape[:-1])
    if tuple(target.shape) == batch + kinds and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    scores = flambeau.nn.functional.linear(
        input, linear_weight.reshape(-1, linear_weight.shape[-1]), bias)
    return cross_entropy(scores.reshape(batch + kinds), target, weight, None,
                         -100 if ignore_index is None else ignore_index, None, reduction,
                         label_smoothing)


@python_function(namespace=NETWORK)
def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any,
             blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> Tensor:
    """-log p(targets), summed over all alignments of them with the input's steps.

    `log_probs` (t, n, c) or (t, c); `targets` (n, s), or all of them one after the other. The mean
    is over losses divided by the targets' lengths. `zero_infinity`: an impossible target costs 0.
    Graves et al., Connectionist temporal classification, ICML 2006.
    """
    return classes.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank,
                            number_of(reduction), zero_infinity)
