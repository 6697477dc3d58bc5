"""A linear layer and the cross entropy of its output, in one."""

from __future__ import annotations

import math
from dataclasses import dataclass

import flambeau
from flambeau import Tensor
from flambeau.nn import functional as F

from .linear import Linear
from .loss import _WeightedLoss

__all__ = ["LinearCrossEntropyLoss", "LinearCrossEntropyOptions"]


@dataclass(frozen=True, slots=True)
class LinearCrossEntropyOptions:
    """How `linear_cross_entropy` may split its work to save memory.

    They choose between computations of the same result.
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: flambeau.dtype | None = None

    def __post_init__(self):
        if self.chunking_method not in (None, "auto", "batch", "aspect_ratio", "memory"):
            raise ValueError(f"invalid chunking_method: {self.chunking_method!r}")
        if self.acc_policy not in ("accurate", "balanced", "compact", "auto"):
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}")
        size = self.batch_chunk_size
        if size is not None and not (isinstance(size, int) and size > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {size}")
        dtypes = (flambeau.float16, flambeau.bfloat16, flambeau.float32, flambeau.float64)
        if self.acc_dtype is not None and self.acc_dtype not in dtypes:
            raise ValueError(
                "acc_dtype must be one of {None, torch.float16, torch.bfloat16, torch.float32, "
                f"torch.float64}}, got {self.acc_dtype}. Pass acc_dtype=None to let the op pick "
                "automatically.")


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
        if not 0 <= label_smoothing <= 1:
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
