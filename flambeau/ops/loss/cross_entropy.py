"""Losses of classification by log-probabilities: cross entropy, negative log-likelihood, CTC.

The functions of `nn.functional` are in `functions`.
"""
from __future__ import annotations

from typing import Any

import numpy as np

import flambeau
from flambeau import kernels as arrays
from flambeau.core.modes import grad_enabled
from flambeau.core.promotion import type_name
from flambeau.core.tensor import Tensor, plain_types
from flambeau.dispatch.declaration import op
from flambeau.kernels.declaration import declining
from flambeau.kernels.network import ctc, losses
from flambeau.kernels.network import softmax as kernels
from flambeau.kernels.refused import refuse
from flambeau.ops.coercion import values_below
from flambeau.ops.loss.reduction import MEAN, NONE, SUM, refuse_gradient
from flambeau.ops.nn.softmax import log_softmax
from flambeau.ops.node_names import over, plus, times
from flambeau.ops.spatial.pool import of_input

_INT64 = np.dtype(np.int64)
_FEW = 2048                 # scores: of more, one kernel does without the logarithms of all
_LOSS: dict[str, Any] = {"namespace": "_nn", "method": False, "autocast": "full"}


# ---- negative log-likelihood ---------------------------------------------------------------------


def _total(losses: np.ndarray, target: np.ndarray, weight: Any, reduction: int,
           ignore_index: int) -> tuple[Any, Any]:
    """The reduced losses, and what a mean divides by."""
    if reduction == NONE:
        return losses, np.ones((), losses.dtype)
    total = arrays.sum(losses)
    if reduction == SUM:
        return total, np.ones((), losses.dtype)
    used = target != ignore_index
    divisor = np.asarray(np.count_nonzero(used) if weight is None else
                         arrays.sum(weight[np.where(used, target, 0)] * used), losses.dtype)
    return arrays.divide(total, divisor), divisor


def _nll_loss_parts(self: Tensor, target: Tensor, weight: Any, reduction: int, ignore_index: int
                    ) -> tuple[Tensor, Tensor]:
    used = target != ignore_index
    places = flambeau.where(used, target, 0)
    each = -self.gather(1, places.unsqueeze(1)).squeeze(1)
    weights = used.to(self.dtype) if weight is None else flambeau.where(used, weight[places], 0)
    each = flambeau.where(used, weights * each, 0)
    if reduction == NONE:
        return each, flambeau.zeros((), dtype=self.dtype)
    total = weights.sum()
    return (each.sum() if reduction == SUM else each.sum() / total), total.detach()


def _nll_loss_backward_parts(grad_output: Tensor, self: Tensor, target: Tensor, weight: Any,
                             total_weight: Tensor, reduction: int, ignore_index: int) -> Tensor:
    used = target != ignore_index
    places = flambeau.where(used, target, 0)
    each = grad_output / total_weight if reduction == MEAN else grad_output
    if weight is not None:
        each = each * weight[places]
    each = flambeau.where(used, -each, 0).to(self.dtype)
    return flambeau.zeros_like(self).scatter(1, places.unsqueeze(1), each.unsqueeze(1))


def _declare_nll_loss(name: str, node: str) -> Any:
    """`nll_loss_forward`, or that of images; gives the function."""
    def canonical(self: Tensor, target: Tensor, weight: Any, reduction: int, ignore_index: int
                  ) -> tuple[Any, ...]:
        _check_target(self, target, weight, "nll_loss_out_frame" if name == "nll_loss" else
                      "nll_loss2d_forward_out_frame")
        refuse_gradient(f"{name}_forward", "weight", weight)
        if target._array.dtype != _INT64:
            target = target.long()
        return self, target, weight, reduction, ignore_index

    parameters = "Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index"
    inside: dict[str, Any] = {"function": False, "method": False, "out": False}
    backward = op(
        f"{name}_backward(Tensor grad_output, {parameters}, Tensor total_weight) -> Tensor",
        kernel=losses.nll_loss_backward, checked_kernel=declining(losses.nll_loss_backward),
        parts=_nll_loss_backward_parts, nondiff="target weight total_weight", **inside)
    return op(
        f"{name}_forward({parameters}) -> (Tensor output, Tensor total_weight)",
        kernel=losses.nll_loss_forward, checked_kernel=declining(losses.nll_loss_forward),
        parts=_nll_loss_parts, canonical=canonical, returns=tuple, differentiable=(True, False),
        node=node, autocast="full", **inside,
        d_self=lambda grad, self, target, weight, reduction, ignore_index, total_weight: of_input(
            backward(grad, self, target, weight, reduction, ignore_index,
                     total_weight.detach() if grad_enabled() else total_weight),
            self, node.replace("Backward0", "BackwardBackward0")))


nll_loss_forward = _declare_nll_loss("nll_loss", "NllLossBackward0")
nll_loss2d_forward = _declare_nll_loss("nll_loss2d", "NllLoss2DBackward0")
_NLL = ("{}(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, "
        "SymInt ignore_index=-100) -> Tensor")


@op(_NLL.format("nll_loss"), **_LOSS)
def nll_loss(self: Tensor, target: Tensor, weight: Any, reduction: int, ignore_index: int
             ) -> Tensor:
    """-weight[t] · input[t], for log-probabilities `input` (n, c) and classes t (n)."""
    if self._array.ndim != 1:
        return nll_loss_forward(self, target, weight, reduction, ignore_index)[0]
    _check_target_type(target)
    given = target._array.shape
    if len(given) == 1 and given != (1,):
        raise ValueError("For 1D input, 1D target must have size 1, but got target size: "
                         f"{given[0]}")
    if len(given) > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    refuse(self._array, "bBilUcW8", "nll_loss_out_frame")
    loss = nll_loss_forward(self.unsqueeze(0), target.reshape(1), weight, reduction,
                            ignore_index)[0]
    return loss.squeeze(0) if reduction == NONE else loss


@op(_NLL.format("nll_loss2d"), **_LOSS)
def nll_loss2d(self: Tensor, target: Tensor, weight: Any, reduction: int, ignore_index: int
               ) -> Tensor:
    """`nll_loss` of each pixel of `input` (n, c, h, w)."""
    return nll_loss2d_forward(self, target, weight, reduction, ignore_index)[0]


@op(_NLL.format("nll_loss_nd"), out=False, **_LOSS)
def nll_loss_nd(self: Tensor, target: Tensor, weight: Any, reduction: int, ignore_index: int
                ) -> Tensor:
    """`nll_loss` of `input` (c) or (n, c, ...)."""
    rank = self._array.ndim
    if weight is not None and weight._array.ndim != 1 and rank in (1, 2):
        raise RuntimeError("weight tensor should be defined either for all "
                           f"{self._array.shape[-1]} classes or no classes but got weight tensor "
                           f"of shape: {list(weight._array.shape)}")
    if rank == 2:
        return nll_loss_forward(self, target, weight, reduction, ignore_index)[0]
    if rank < 1:
        raise ValueError(f"Expected 1 or more dimensions (got {rank})")
    return (nll_loss if rank == 1 else nll_loss2d)(self, target, weight, reduction, ignore_index)


def _check_target(input: Tensor, target: Tensor, weight: Any, kernel: str = "") -> None:
    x, t = input._array.shape, target._array.shape
    count = t[0] if t else 0
    if x[0] != count and len(x) > 1:
        raise ValueError(f"Expected input batch_size ({x[0]}) to match target batch_size "
                         f"({count}).")
    if len(x) == 2 and len(t) != 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if len(x) == 4 and len(t) != 3:
        raise RuntimeError("only batches of spatial targets supported (3D tensors) but got targets "
                           f"of dimension: {len(t)}")
    if x[2:] != t[1:]:
        if len(x) == 4:
            raise RuntimeError(f"size mismatch (got input: {list(x)} , target: {list(t)}")
        raise RuntimeError(f"Expected target size {[x[0], *x[2:]]}, got {list(t)}")
    _check_target_type(target)
    if weight is not None and weight._array.shape != (x[1],):
        raise RuntimeError(f"weight tensor should be defined either for all {x[1]} classes or no "
                           f"classes but got weight tensor of shape: {list(weight._array.shape)}")
    if kernel:
        refuse(input._array, "bBilUcW8", kernel)
    if weight is not None and weight._array.dtype != input._array.dtype:
        raise RuntimeError(f"expected scalar type {type_name(input.dtype)} but found "
                           f"{type_name(weight.dtype)}")


def _check_target_type(target: Tensor) -> None:
    if target._array.dtype not in (_INT64, np.uint8):
        raise RuntimeError("expected target dtype to be Long or Byte, but got "
                           f"{type_name(target.dtype)}")


# ---- cross entropy -------------------------------------------------------------------------------


def _cross_entropy_kernel(input: np.ndarray, target: np.ndarray, weight: Any, reduction: int,
                          ignore_index: int, smoothing: float) -> Any:
    losses, stats = kernels.cross_entropy(input, target, weight, ignore_index, smoothing)
    return *_total(losses, target, weight, reduction, ignore_index), stats


def _cross_entropy_parts(input: Tensor, target: Tensor, weight: Any, reduction: int,
                         ignore_index: int, smoothing: float) -> tuple[Any, ...]:
    return _label_smoothing_loss(log_softmax(input, 1), target, weight, reduction, ignore_index,
                                 smoothing), None, None


_cross_entropy = op(
    "_cross_entropy(Tensor input, Tensor target, Tensor? weight, int reduction, "
    "SymInt ignore_index, float smoothing) -> (Tensor loss, Tensor divisor, Tensor stats)",
    kernel=_cross_entropy_kernel, parts=_cross_entropy_parts, implicit=True,
    backward=lambda grad, input, target, stats, weight, divisor, ignore_index, smoothing: (
        kernels.cross_entropy_backward(arrays.divide(grad, divisor), input, target, stats, weight,
                                       ignore_index, smoothing), None, None),
    nondiff="target weight", differentiable=(True, False, False), returns=tuple, function=False,
    method=False, out=False, node="NllLossBackward0")


def _label_smoothing_loss(logs: Tensor, target: Tensor, weight: Any, reduction: int,
                          ignore_index: int, smoothing: float) -> Tensor:
    """The loss for classes, given log-probabilities."""
    loss = nll_loss_nd(logs, target, weight, reduction, ignore_index)
    if not smoothing:
        return loss
    column = (1, -1, *(1,) * (logs._array.ndim - 2))
    classes = logs._array.shape[1]
    smooth = -(logs if weight is None else logs * weight.view(column)).sum(1)
    ignored = target == ignore_index
    alone = hasattr(ignored, "_level") and not hasattr(smooth, "_level")    # only they are slices
    smooth = smooth.masked_fill(ignored, 0.0) if alone else smooth.masked_fill_(ignored, 0.0)
    if reduction == MEAN and weight is None:
        count = (~ignored).sum()
        smooth = smooth.sum() / count
    elif reduction != NONE:
        smooth = smooth.sum()
        if reduction == MEAN:
            smooth = smooth / (weight[flambeau.where(ignored, 0, target)] * ~ignored).sum()
    smooth = times(smooth, smoothing / classes)
    return times(loss, 1 - smoothing) + smooth


def _with_probabilities(input: Tensor, target: Tensor, weight: Any, reduction: int,
                        smoothing: float) -> Tensor:
    """The loss for targets that are distributions over the classes (dimension 1)."""
    shape = input._array.shape
    axis = 0 if len(shape) == 1 else 1
    classes = input.size(axis)
    if weight is not None and weight._array.size != classes:
        raise RuntimeError("cross_entropy: weight tensor should be defined either for all "
                           f"{classes} classes or no classes but got weight tensor of shape: "
                           f"{list(weight._array.shape)}")
    if smoothing:
        target = plus(times(target, 1 - smoothing), smoothing / max(classes, 1))
    product = log_softmax(input, axis) * target
    if weight is not None:
        product = product * weight.view((-1, *(1,) * (len(shape) - axis - 1)))
    if reduction == NONE:
        return -product.sum(axis)
    total = -product.sum()
    if reduction == SUM:
        return total
    return over(total, input._array.size / max(classes, 1) or float("nan"))


@op("cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, "
    "SymInt ignore_index=-100, float label_smoothing=0.0) -> Tensor", out=False, **_LOSS)
def cross_entropy_loss(self: Tensor, target: Tensor, weight: Any, reduction: int,
                       ignore_index: int, label_smoothing: float) -> Tensor:
    """-weight[t] · log_softmax(input)[t], or the same for a distribution over the classes."""
    input = self
    x, t = input._array, target._array
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")
    if t.shape == x.shape:
        if t.dtype.kind != "f" and t.dtype.kind != "V":
            raise RuntimeError("Expected floating point type for target with class probabilities, "
                               f"got {type_name(target.dtype)}")
        if ignore_index >= 0:
            raise RuntimeError("ignore_index is not supported for floating point target")
        return _with_probabilities(input, target, weight, reduction, label_smoothing)
    if not x.ndim:
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got 1)")
    if not label_smoothing and (x.ndim == 1 or (x.ndim == 2 and x.size <= _FEW)):
        logs = log_softmax(input, x.ndim - 1)
        return nll_loss_nd(logs, target, weight, reduction, ignore_index)
    if x.ndim == 1:
        loss = cross_entropy_loss(input.unsqueeze(0), target.unsqueeze(0), weight, reduction,
                                  ignore_index, label_smoothing)
        return loss.squeeze(0) if reduction == NONE else loss
    if x.ndim == 2 and t.ndim == 1 and t.dtype is _INT64 and x.shape[0] == t.shape[0] \
            and weight is None and x.dtype.kind == "f":
        return _cross_entropy(input, target, None, reduction, ignore_index, label_smoothing)[0]
    _check_target(input, target, weight)
    if t.dtype != _INT64:
        target = target.long()
    if x.ndim == 2 and x.dtype.kind in "fV":
        return _cross_entropy(input, target, weight, reduction, ignore_index, label_smoothing)[0]
    return _label_smoothing_loss(log_softmax(input, 1), target, weight, reduction, ignore_index,
                                 label_smoothing)


def check_affine(input: Tensor, linear_weight: Tensor, linear_bias: Any) -> None:
    if (n := input.dim()) not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {n}")
    if (n := linear_weight.dim()) < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {n}")
    x, w = tuple(input.shape), tuple(linear_weight.shape)
    if x[-1] != w[-1]:
        raise RuntimeError("expected equal input and linear_weight last dimensions (in_features), "
                           f"got {x[-1]} and {w[-1]}, respectively")
    if linear_bias is not None and tuple(linear_bias.shape) != w[:-1]:
        raise RuntimeError(f"expected linear_bias shape {w[:-1]}, got {tuple(linear_bias.shape)}")
    if len(w) > 2 and len(x) == 1:
        raise RuntimeError(f"K-dimensional loss defined by linear_weight shape {w} requires "
                           f"batched input, (N, {x[0]}), got unbatched input with shape {x}")


# ---- connectionist temporal classification -------------------------------------------------------


def _ctc_parts(input: Tensor, targets: Tensor, inputs: Any, lengths: Any, blank: int
               ) -> tuple[Tensor, Tensor]:
    """-log of the probability of all alignments; `targets` (n, s) are padded."""
    device, (steps, n, _) = input.device, input._array.shape
    inputs, lengths = _as_tensor(inputs, device), _as_tensor(lengths, device)
    s = targets._array.shape[1]
    blanks = flambeau.full_like(targets, blank)
    index = flambeau.cat([flambeau.stack([blanks, targets], 2).reshape(n, 2 * s),
                          flambeau.full((n, 1), blank, device=device)], 1)
    skips = index != blank
    skips = flambeau.cat([skips[:, :2] & False, skips[:, 2:] & (index[:, 2:] != index[:, :-2])], 1)
    # finite, since the derivative of the logarithm of a sum of nothing is none
    never = -1e30
    nothing = flambeau.full((n, 1), never, dtype=input.dtype, device=device)
    at = flambeau.arange(2 * s + 1, device=device)
    rows = [flambeau.where(at < 2, input[0].gather(1, index), never)] if steps else []
    for t in range(1, steps):
        one = flambeau.cat([nothing, rows[-1][:, :-1]], 1)
        two = flambeau.where(skips, flambeau.cat([nothing, nothing, rows[-1][:, :-2]], 1), never)
        reach = flambeau.logsumexp(flambeau.stack([rows[-1], one, two]), 0)
        rows.append(reach + input[t].gather(1, index))
    end = 2 * lengths.unsqueeze(1)
    ends = (at == end) | (at == end - 1)
    last = flambeau.stack(rows)[inputs - 1, flambeau.arange(n, device=device)]
    losses = -flambeau.logsumexp(flambeau.where(ends, last, never), 1)
    losses = flambeau.where(losses > -never / 2, np.inf, losses)
    losses = flambeau.where(inputs == 0, flambeau.where(lengths == 0, 0.0, np.inf), losses)
    # The loss is meant for normalised `input`; torch's gradient is the one in that plane.
    valid = flambeau.arange(steps, device=device).unsqueeze(1) < inputs
    mass = (input.exp().sum(2) * valid).sum(0)
    return losses + (mass - mass.detach()), flambeau.empty(0, device=device)


_ctc_losses = op(
    "_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, "
    "int blank) -> (Tensor result, Tensor alphas)", kernel=ctc.ctc_loss, parts=_ctc_parts,
    backward=lambda grad, log_probs, result, alphas, targets, input_lengths, target_lengths, blank:
    (ctc.ctc_loss_backward(grad, log_probs, result, alphas, targets, input_lengths, target_lengths,
                           blank), None),
    nondiff="targets", differentiable=(True, False), returns=tuple, function=False, method=False,
    out=False, node="CtcLossBackward0")


def _as_tensor(lengths: Any, device: Any) -> Tensor:
    return lengths if isinstance(lengths, Tensor) else flambeau.tensor(
        lengths, dtype=flambeau.long, device=device)


def _lengths(given: Any, n: int, name: str) -> Any:
    """Checked lengths: a tuple, or a tensor where `vmap` has others for each slice."""
    if isinstance(given, Tensor) and given._array.dtype.kind not in "iub":
        raise RuntimeError(f"{name} must be integral")
    values = tuple([int(v) for v in (values_below(given).reshape(-1).tolist()
                                     if isinstance(given, Tensor) else given)])
    several = isinstance(given, Tensor) and type(given) not in plain_types
    if (given.numel() if several else len(values)) != n:
        raise RuntimeError(f"{name} must be of size batch_size")
    if min(values, default=0) < 0:
        raise RuntimeError(f"Expected {name} to have value at least 0, but got value {min(values)} "
                           "(while checking arguments for ctc_loss_allocate_outputs)")
    return given.reshape(-1).long() if several else values


def _longest_length(lengths: Any) -> int:
    return max(values_below(lengths).reshape(-1).tolist() if isinstance(lengths, Tensor)
               else lengths, default=0)


def _check_extent(holds: bool, wanted: str, size: int) -> None:
    if not holds:
        raise RuntimeError(f"Expected tensor to have size {wanted}, but got size {size} for "
                           "argument #2 'targets' (while checking arguments for "
                           "ctc_loss_allocate_outputs)")


def _padded_targets(targets: Tensor, lengths: Any, n: int) -> Tensor:
    """Targets as (n, longest), whether they were so or one after the other."""
    t, longest = targets._array, _longest_length(lengths)
    targets = targets.long()
    if t.ndim == 1 and isinstance(lengths, Tensor):
        places = (lengths.cumsum(0) - lengths).unsqueeze(1) + flambeau.arange(longest)
        return targets[places.clamp_max(t.size - 1)]
    if t.ndim == 1:
        _check_extent(t.size == sum(lengths), f"{sum(lengths)} at dimension 0", t.size)
        rows = [flambeau.constant_pad_nd(row, (0, longest - len(row)))
                for row in targets.split(list(lengths))]
        return flambeau.stack(rows) if rows else targets.reshape(0, 0)
    _check_extent(t.shape[0] == n, f"{n} at dimension 0", t.shape[0])
    _check_extent(t.shape[1] >= longest, f"at least {longest} at dimension 1", t.shape[1])
    return targets[:, :longest].contiguous()


def _ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any,
              blank: int, reduction: int, zero_infinity: bool) -> Tensor:
    x = log_probs._array
    if x.ndim == 2:
        loss = _ctc_loss(log_probs.unsqueeze(1), targets.reshape(1, -1), input_lengths,
                         target_lengths, blank, reduction, zero_infinity)
        return loss.squeeze(0) if reduction == NONE else loss
    if x.dtype.kind != "f" or x.dtype.itemsize < 4:
        raise NotImplementedError("\"ctc_loss_cpu\" not implemented for "
                                  f"'{type_name(log_probs.dtype)}'")
    if not x.size:
        raise RuntimeError("log_probs tensor must not be empty")
    checking = "(while checking arguments for ctc_loss_allocate_outputs)"
    if x.ndim != 3:
        raise RuntimeError(f"Expected 3-dimensional tensor, but got {x.ndim + 1}-dimensional "
                           f"tensor for argument #1 'log_probs' {checking}")
    if targets._array.ndim not in (1, 2):
        raise RuntimeError(f"Expected 1 to 2 dimensions, but got {targets._array.ndim}-dimensional "
                           f"tensor for argument #2 'targets' {checking}")
    if not 0 <= blank < x.shape[2]:
        raise RuntimeError("blank must be in label range")
    inputs = _lengths(input_lengths, x.shape[1], "input_lengths")
    lengths = _lengths(target_lengths, x.shape[1], "target_lengths")
    targets = _padded_targets(targets, lengths, x.shape[1])
    if _longest_length(inputs) > x.shape[0]:
        raise RuntimeError(f"Expected input_lengths to have value at most {x.shape[0]}, but got "
                           f"value {_longest_length(inputs)} (while checking arguments for "
                           "ctc_loss_allocate_outputs)")
    losses_of = _ctc_losses if type(inputs) is type(lengths) is tuple else _ctc_parts
    losses, _ = losses_of(log_probs, targets, inputs, lengths, blank)
    if zero_infinity:
        losses = flambeau.where(losses == np.inf, 0, losses)
    if reduction == NONE:
        return losses
    if reduction == SUM:
        return losses.sum()
    return (losses / _as_tensor(lengths, log_probs.device).to(log_probs.dtype).clamp_min(1)).mean()


ctc_loss = op(*[
    f"ctc_loss.{name}(Tensor log_probs, Tensor targets, {kind} input_lengths, "
    f"{kind} target_lengths, int blank=0, int reduction=Mean, bool zero_infinity=False) -> Tensor"
    for name, kind in (("IntList", "int[]"), ("Tensor", "Tensor"))],
    body=_ctc_loss, method=False, out=False, autocast="full",
    doc="-log p(targets), summed over all alignments of them with the input's steps.")
