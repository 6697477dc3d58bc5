"""What losses share: how their elements are reduced, and weights of classes."""

from __future__ import annotations

from flambeau import Tensor
from flambeau.nn import _reduction as _Reduction

from .module import Module

__all__: list[str] = []


class _Loss(Module):
    __constants__: list[str]
    reduction: str

    def __init__(self, size_average=None, reduce=None, reduction: str = "mean") -> None:
        super().__init__()
        if size_average is not None or reduce is not None:
            reduction = _Reduction.legacy_get_string(size_average, reduce)
        self.reduction = reduction


class _WeightedLoss(_Loss):
    def __init__(self, weight: Tensor | None = None, size_average=None, reduce=None,
                 reduction: str = "mean") -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
