"""How a loss puts its elements together: PyTorch's names and numbers of reductions."""
from __future__ import annotations

from typing import Any

from flambeau._support.settings import warn_user
from flambeau.core.modes import grad_enabled
from flambeau.core.tensor import Tensor

NONE, MEAN, SUM = range(3)
NUMBERS = {"none": NONE, "mean": MEAN, "sum": SUM}


def number_of(reduction: Any, size_average: Any = None, reduce: Any = None) -> int:
    """The number of the reduction, where two old flags may still say it."""
    reduction = name_of(reduction, size_average, reduce)
    if type(reduction) is str and reduction in NUMBERS:
        return NUMBERS[reduction]
    if reduction == "elementwise_mean":
        warn_user("reduction='elementwise_mean' is deprecated. Please use reduction='mean' "
                  "instead.")
        return MEAN
    raise ValueError(f"{reduction} is not a valid value for reduction")


def name_of(reduction: Any, size_average: Any, reduce: Any) -> Any:
    """The reduction, where two old flags may still say it."""
    if size_average is None and reduce is None:
        return reduction
    return name_by_flags(size_average, reduce)


def name_by_flags(size_average: Any, reduce: Any, warns: bool = True) -> str:
    """The reduction that two old flags say: the mean, if they say nothing."""
    average = True if size_average is None else size_average
    reduced = True if reduce is None else reduce
    reduction = "mean" if average and reduced else "sum" if reduced else "none"
    if warns:
        warn_user("size_average and reduce args will be deprecated, please use "
                  f"reduction='{reduction}' instead.")
    return reduction


def reduce_loss(loss: Tensor, reduction: int) -> Tensor:
    """The mean, the sum, or the elements themselves."""
    return loss.mean() if reduction == MEAN else loss.sum() if reduction == SUM else loss


def split_grad(grad: Tensor, count: int, reduction: int) -> Tensor:
    """The gradient of each of `count` losses, given that of what they are reduced to."""
    return grad / count if reduction == MEAN else grad


def refuse_gradient(name: str, argument: str, tensor: Any) -> None:
    """Raise if a gradient is wanted by an argument that there is no derivative by."""
    if isinstance(tensor, Tensor) and tensor.requires_grad and grad_enabled():
        raise RuntimeError(f"The function '{name}' is not differentiable with respect to argument "
                           f"'{argument}'. This input cannot have requires_grad True.")
