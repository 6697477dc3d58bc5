"""A linear layer and the cross entropy of its output, in one."""

from __future__ import annotations

import math

from flambeau import Tensor
from flambeau.nn import functional as F

from ._loss_bases import _WeightedLoss
from .linear import Linear
from .linear_cross_entropy_options import LinearCrossEntropyOptions

__all__: list[str] = []


class LinearCrossEntropyLoss(_WeightedLoss):
    r"""`CrossEntropyLoss` of :math:`x W^\top + b`.

    With `out_features` every sample has that many targets, and the layer as many sets of scores.

    Example:
        >>> loss = nn.LinearCrossEntropyLoss(4, 5)
        >>> loss(flambeau.zeros(3, 4), flambeau.tensor([0, 4, 2])).item()
        1.6094379425048828
    """

    __constants__ = ["num_classes", "out_features", "reduction", "ignore_index", "label_smoothing"]

    def __init__(self, in_features: int, num_classes: int, *, out_features: tuple[int, ...] = (),
                 bias: bool = False, device=None, dtype=None, reduction: str = "mean",
                 weight: Tensor | None = None, ignore_index: int | None = None,
                 label_smoothing: float = 0.0,
                 options: LinearCrossEntropyOptions | None = None) -> None:
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(
                f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}")
        if label_smoothing < 0 or label_smoothing > 1:
            raise RuntimeError(
                f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        super().__init__(weight, reduction=reduction)
        self.in_features = in_features
        self.num_classes = num_classes
        self.out_features = out_features
        rows = num_classes * math.prod(out_features)
        self.linear = Linear(in_features, rows, bias=bias, device=device, dtype=dtype)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.options = options

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        kinds, linear = (self.num_classes, *self.out_features), self.linear
        return F.linear_cross_entropy(
            input, linear.weight.reshape(*kinds, self.in_features), target,
            linear_bias=None if linear.bias is None else linear.bias.reshape(kinds),
            weight=self.weight, reduction=self.reduction, ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing, options=self.options)

    def extra_repr(self) -> str:
        return (f"in_features={self.in_features}, num_classes={self.num_classes}, "
                f"out_features={self.out_features}, bias={self.linear.bias is not None}, "
                f"reduction={self.reduction}, ignore_index={self.ignore_index}, "
                f"label_smoothing={self.label_smoothing}, options={self.options}")
