"""How calls of the common ops are shown: factories, arithmetic, views, indexing, reductions,
products and random numbers."""
from __future__ import annotations

import math
from typing import Any

import flambeau
from flambeau._dispatch.forms import becomes
from flambeau.core.tensor import Tensor
from flambeau.ops.loss import cross_entropy
from flambeau.ops.nn.dropout import SATURATION, channels


def _drops(input: Tensor, p: float, train: bool) -> bool:
    return bool(0 < p < 1 and train and input.numel())


def _noise(input: Tensor, p: float, feature: bool) -> Tensor:
    noise = input.new_empty(channels(input)) if feature else flambeau.empty_like(input)
    return noise.bernoulli_(1 - p)


def _shown_dropout(feature: bool, product: Any) -> Any:
    def dropout(input: Tensor, p: float, train: bool) -> Tensor:
        if not _drops(input, p, train):
            return NotImplemented
        with flambeau.no_grad():
            noise = _noise(input, p, feature).div_(1 - p)
        return product(input, noise)
    return dropout


def _shown_alpha_dropout(feature: bool, product: Any) -> Any:
    def alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
        if not _drops(input, p, train):
            return NotImplemented
        scale = 1 / math.sqrt((SATURATION**2 * p + 1) * (1 - p))
        with flambeau.no_grad():
            noise = _noise(input, p, feature)
            offset = noise.add(-1).mul_(SATURATION * scale).add_(SATURATION * scale * p)
            noise.mul_(scale)
        return product(input, noise).add_(offset)
    return alpha_dropout


for _prefix, _feature in (("", False), ("feature_", True)):
    becomes(f"{_prefix}dropout", _shown_dropout(_feature, flambeau.mul))
    becomes(f"{_prefix}dropout_", _shown_dropout(_feature, Tensor.mul_))
    becomes(f"{_prefix}alpha_dropout", _shown_alpha_dropout(_feature, flambeau.mul))
    becomes(f"{_prefix}alpha_dropout_", _shown_alpha_dropout(_feature, Tensor.mul_))

# ---- layers that are one call here, and several in PyTorch ---------------------------------------


def _rms_norm(input: Tensor, weight: Any, dims: int, eps: float) -> Tensor:
    scale = flambeau.rsqrt((input.pow(2).mean(tuple(range(-dims, 0)), True)).add_(eps))
    scaled = input * scale
    return scaled if weight is None else scaled * weight


def _cross_entropy(input: Tensor, target: Tensor, weight: Any, reduction: int, ignore_index: int,
                   smoothing: float) -> Tensor:
    """As PyTorch computes it: log-probabilities, then the loss for classes."""
    return cross_entropy._smoothed(flambeau.log_softmax(input, 1), target, weight, reduction,
                                   ignore_index, smoothing)


becomes("_rms_norm", _rms_norm)
becomes("_cross_entropy", _cross_entropy)
