"""Losses element by element and their derivatives; the larger ones with their reduction."""
import numpy as np

from flambeau import kernels as arrays
from flambeau.kernels.declaration import kernel, laid_out_by, mover
from flambeau.kernels.dtypes import type_title
from flambeau.kernels.network.softmax import nll_loss, picked_backward
from flambeau.kernels.refused import refuse

NONE, MEAN, SUM = range(3)              # PyTorch's numbers of reductions


def fold(losses, reduction):
    """The losses themselves, their sum or their mean."""
    if reduction == NONE:
        return losses
    return arrays.mean(losses) if reduction == MEAN else arrays.sum(losses)


def share(g, size, reduction):
    """The gradient of each loss, given that of what they are reduced to."""
    return arrays.divide(g, np.asarray(size, g.dtype)) if reduction == MEAN else g


# ---- element by element -------------------------------------------------------------------------


@laid_out_by(lambda x, y, *rest: (x, y))
def mse_loss(x, y, reduction):
    """(x - y)²"""
    return fold((x - y) * (x - y), reduction)


@kernel
def mse_loss_backward(g, x, y, reduction):
    """The gradient in x."""
    return np.asarray(share(g, x.size, reduction) * (2 * (x - y)), order="C")


@laid_out_by(lambda x, y, *rest: (x, y))
def smooth_l1_loss(x, y, reduction, beta):
    """d² / (2 beta) where d = |x - y| is less than beta, else d - beta / 2"""
    d = np.abs(x - y)
    return fold(np.where(d < beta, 0.5 * d * d / _as(beta, x), d - _as(0.5 * beta, x)), reduction)


@kernel
def smooth_l1_loss_backward(g, x, y, reduction, beta):
    """The gradient in x."""
    slope = np.clip((x - y) / _as(beta, x), _as(-1, x), _as(1, x))
    return np.asarray(share(g, x.size, reduction) * slope, order="C")


@laid_out_by(lambda x, y, *rest: (x, y))
def huber_loss(x, y, reduction, delta):
    """d² / 2 where d = |x - y| is less than delta, else delta (d - delta / 2)"""
    d = np.abs(x - y)
    far = _as(delta, x) * (d - _as(0.5 * delta, x))
    return fold(np.where(d < delta, _as(0.5, x) * d * d, far), reduction)


@kernel
def huber_loss_backward(g, x, y, reduction, delta):
    """The gradient in x."""
    slope = np.clip(x - y, _as(-delta, x), _as(delta, x))
    return np.asarray(share(g, x.size, reduction) * slope, order="C")


@laid_out_by(lambda x, y, reduction: (x, y), widens=False)
def soft_margin_loss(x, y, reduction):
    """log(1 + exp(-x * y)); infinite, as in PyTorch, where the exponential is."""
    return fold(np.log1p(np.exp(-y * x)), reduction)


@laid_out_by(lambda g, x, y, reduction: (y, x))
def soft_margin_loss_backward(g, x, y, reduction):
    """The gradient in x."""
    return share(g, x.size, reduction) * (-y / (1 + np.exp(x * y)))


# ---- of classes ---------------------------------------------------------------------------------


@kernel
def nll_loss_forward(log_probabilities, target, weight, reduction, ignore_index):
    """The negative log-likelihood, and the total of the weights, which a mean is divided by."""
    losses = nll_loss(log_probabilities, target, weight, ignore_index)
    if reduction == NONE:
        return losses, np.zeros((), losses.dtype)
    used = target != ignore_index
    weights = 1 if weight is None else weight[np.where(used, target, 0)]
    total = np.asarray(np.sum(weights * used, dtype=np.float64), losses.dtype)
    whole = arrays.sum(losses)
    return (whole if reduction == SUM else np.asarray(np.divide(whole, total))), total


@kernel
def nll_loss_backward(g, x, target, weight, total, reduction, ignore_index):
    """The gradient in the log-probabilities."""
    g = np.asarray(g / total) if reduction == MEAN else g
    return picked_backward(g, target, weight, x.shape, ignore_index)


def check_multi_margin(x, target, weight):
    """Raise unless there is one class for each row of scores."""
    _check_scores(x)
    classes = x.shape[-1] if x.ndim else 1
    rows = x.shape[0] if x.ndim == 2 else 1
    if target.ndim > 1 or target.size != rows:
        raise RuntimeError("multi_margin_loss: target tensor should be 1-D with size equal to the "
                           f"number of input samples (batch size). Expected target size [{rows}], "
                           f"but got {list(target.shape)}. Input has shape {list(x.shape)}."
                           )
    if weight is not None and weight.size != classes:
        raise RuntimeError(f"inconsistent weight size, expected {classes} but got "
                           f"{list(weight.shape)}")
    refuse(x, "bBilUecW8", "multi_margin_loss_cpu_kernel")
    _check_classes(target, 0, classes, "target out of range")


def _check_scores(x):
    if x.ndim > 2 or (x.ndim and not x.shape[-1]):
        raise RuntimeError("Expected non-empty vector or matrix with optional 0-dim batch size, "
                           f"but got: {list(x.shape)}")


def _check_classes(target, least, classes, said):
    if target.dtype != np.int64:
        raise RuntimeError(f"expected scalar type Long but found {type_title(target.dtype)}")
    if target.size and (target.min() < least or target.max() >= classes):
        raise RuntimeError(said)


def check_multilabel_margin(x, target):
    """Raise unless there is a list of classes for each row of scores."""
    _check_scores(x)
    if target.shape != x.shape:
        raise RuntimeError(f"inconsistent target size: {list(target.shape)} for input of size: "
                           f"{list(x.shape)}")
    kernel = "multilabel_margin_loss_forward_out_frame"
    if target.dtype != np.int64:                # which is seen when it runs
        refuse(x, "bBilUecW8", kernel)
    _check_classes(target, -1, x.shape[-1] if x.ndim else 1,
                   "argument #2 'target' is out of range")
    refuse(x, "bBilUecW8", kernel)


@mover
def multi_margin_loss(x, target, weight, p, margin, reduction):
    """Σ max(0, margin - x[t] + x[i])^p / n over the classes i other than t, times weight[t]."""
    check_multi_margin(x, target, weight)
    hinge, own = _margins(x, target, margin)
    loss = np.where(own, 0, hinge if p == 1 else hinge * hinge).sum(1) / _as(own.shape[1], x)
    loss = (loss if weight is None else loss * weight[target.reshape(-1)]).astype(x.dtype)
    return fold(loss.reshape(target.shape) if x.ndim < 2 else loss, reduction)


def _margins(x, target, margin):
    """How far each score is within the margin of its row's own, and which are the own ones."""
    rows = x.reshape(-1, x.shape[-1] if x.ndim else 1)
    index = target.reshape(-1, 1)
    hinge = np.maximum(_as(margin, x) - np.take_along_axis(rows, index, 1) + rows, 0)
    return hinge, np.arange(rows.shape[1]) == index


@mover
def multi_margin_loss_backward(g, x, target, weight, p, margin, reduction):
    """The gradient in the scores."""
    hinge, own = _margins(x, target, margin)
    g = np.asarray(share(g, len(own), reduction)).reshape(-1, 1) / _as(own.shape[1], x)
    slope = g * ((hinge > 0) if p == 1 else 2 * hinge) * ~own
    if weight is not None:
        slope = slope * weight[target.reshape(-1, 1)]
    return np.where(own, -slope.sum(1, keepdims=True), slope).astype(x.dtype).reshape(x.shape)


@mover
def multilabel_margin_loss_forward(x, target, reduction):
    """Σ max(0, 1 - x[y] + x[i]) / n over target classes y, up to the first -1, and others i; and
    which classes are targets."""
    check_multilabel_margin(x, target)
    hinge, _, is_target = _label_margins(x, target)
    loss = (hinge.sum((1, 2)) / _as(hinge.shape[1], x)).astype(x.dtype)
    return (fold(loss.reshape(x.shape[:-1]), reduction),
            is_target.astype(x.dtype).reshape(x.shape))


def _label_margins(x, target):
    """For each row, label and other class how far the other is within the margin; the labels, and
    which classes are labels."""
    n = x.shape[-1] if x.ndim else 1
    rows, labels = x.reshape(-1, n), target.reshape(-1, n)
    valid = np.cumsum(labels < 0, 1) == 0
    index = np.where(valid, labels, 0)
    is_target = (valid[:, :, None] & (index[:, :, None] == np.arange(n))).any(1)
    own = np.take_along_axis(rows, index, 1)
    hinge = np.maximum(1 - (own[:, :, None] - rows[:, None, :]), 0)
    return np.where(valid[:, :, None] & ~is_target[:, None, :], hinge, 0), index, is_target


@mover
def multilabel_margin_loss_backward(g, x, target, is_target, reduction):
    """The gradient in the scores."""
    hinge, index, _ = _label_margins(x, target)
    g = np.asarray(share(g, len(hinge), reduction)).reshape(-1, 1, 1) / _as(hinge.shape[1], x)
    slope = g * (hinge > 0)
    found = slope.sum(1)
    np.subtract.at(found, (np.arange(len(found))[:, None], index), slope.sum(2))
    return found.astype(x.dtype).reshape(x.shape)


@laid_out_by(lambda x, y, *rest: (x, y))
def binary_cross_entropy(x, y, weight, reduction):
    """-(y log x + (1 - y) log(1 - x)), logarithms cut off at -100."""
    for name, values in (("input", x), ("target", y)):
        if not ((values >= 0) & (values <= 1)).all():
            raise RuntimeError(f"all elements of {name} should be between 0 and 1")
    low = _as(-100, x)
    loss = (y - 1) * np.maximum(np.log1p(-x), low) - y * np.maximum(np.log(x), low)
    return fold(loss if weight is None else loss * weight, reduction)


@laid_out_by(lambda g, x, *rest: (x,))
def binary_cross_entropy_backward(g, x, y, weight, reduction):
    """The gradient in x; where that is 0 or 1 a denominator of 1e-12 stands in."""
    g = share(g, x.size, reduction)
    g = g if weight is None else g * weight
    return g * (x - y) / np.maximum((1 - x) * x, _as(1e-12, x))


@laid_out_by(lambda x, y, *rest: (y, x), widens=False)
def binary_cross_entropy_with_logits(x, y, weight, pos_weight, reduction):
    """(1 - y) x + log(1 + exp(-x)), the latter times 1 + (pos_weight - 1) y."""
    negative = -arrays.logsigmoid(x)
    if pos_weight is not None:
        negative = negative * ((pos_weight - 1) * y + 1)
    loss = ((1 - y) * x + negative).astype(y.dtype, copy=False)
    return fold(loss if weight is None else loss * weight, reduction)


@laid_out_by(lambda g, x, y, weight, pos_weight, reduction: (
    (x, y) if pos_weight is None else (pos_weight, y, x)))
def binary_cross_entropy_with_logits_backward(g, x, y, weight, pos_weight, reduction):
    """The gradient in x."""
    g = share(g, x.size, reduction)
    g = g if weight is None else g * weight
    sigmoid = 1 / (1 + np.exp(-x))
    if pos_weight is None:
        return g * (sigmoid - y)
    scaled = pos_weight * y
    return g * ((scaled + 1 - y) * sigmoid - scaled)


def _as(value, like):
    return like.dtype.type(value)
