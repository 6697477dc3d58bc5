"""Activations that are probabilities along a dimension."""
from __future__ import annotations

from flambeau import Tensor
from flambeau._support.own_methods import define_in_subclasses
from flambeau.nn import functional as F
from flambeau.nn.modules.module import Module


@define_in_subclasses("__init__", "forward", "extra_repr")
class _OverDimension(Module):
    __constants__ = ["dim"]
    dim: int | None

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def __setstate__(self, state):
        super().__setstate__(state)
        if not hasattr(self, "dim"):
            self.dim = None

    def forward(self, input: Tensor) -> Tensor:
        # The stack level is that of the user's call, for the warning about a missing dim.
        return getattr(F, self._function)(input, self.dim, _stacklevel=5)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(_OverDimension):
    r""":math:`e^{x_i} / \sum_j e^{x_j}` along `dim`.

    Example:
        >>> nn.Softmax(dim=0)(flambeau.zeros(2))
        tensor([0.5000, 0.5000])
    """

    _function = "softmax"


class Softmin(_OverDimension):
    r""":math:`e^{-x_i} / \sum_j e^{-x_j}` along `dim`.

    Example:
        >>> nn.Softmin(dim=0)(flambeau.zeros(2))
        tensor([0.5000, 0.5000])
    """

    _function = "softmin"


class LogSoftmax(_OverDimension):
    r""":math:`x_i - \ln \sum_j e^{x_j}` along `dim`.

    Example:
        >>> nn.LogSoftmax(dim=0)(flambeau.zeros(2))
        tensor([-0.6931, -0.6931])
    """

    _function = "log_softmax"


class Softmax2d(Module):
    """Softmax over the channels of (N, C, H, W) or (C, H, W).

    Example:
        >>> nn.Softmax2d()(flambeau.zeros(1, 2, 1, 1)).flatten()
        tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (3, 4):
            raise ValueError(
                f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3, _stacklevel=5)
