"""Padding: the input with a border around its last one, two or three dimensions.

`padding` is the width of the border: one number for all sides, or a tuple that names the sides
from the last dimension on, (left, right, top, bottom, front, back).
"""

from __future__ import annotations

from flambeau import Tensor
from flambeau._support.own_methods import copy_inherited, define_in_subclasses
from flambeau.nn import functional as F

from .module import Module
from .utils import _ntuple

__all__ = ["CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d",
           "ConstantPad3d", "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d",
           "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d",
           "ZeroPad3d"]


@define_in_subclasses("__init__")
class _PadNd(Module):
    """A border of a kind, around `_n_dims` dimensions."""

    __constants__ = ["padding"]
    _n_dims: int
    _mode: str

    def __init__(self, padding) -> None:
        super().__init__()
        self.padding = _ntuple(2 * self._n_dims)(padding)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


@define_in_subclasses("__init__")
class _ConstantPadNd(_PadNd):
    __constants__ = ["padding", "value"]

    def __init__(self, padding, value: float) -> None:
        Module.__init__(self)
        self.value = value
        self.padding = _ntuple(2 * self._n_dims)(padding)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """A border of one value around the last dimension.

    Example:
        >>> nn.ConstantPad1d((1, 2), 3.5)(flambeau.zeros(1, 2))
        tensor([[3.5000, 0.0000, 0.0000, 3.5000, 3.5000]])
    """

    _n_dims = 1


class ConstantPad2d(_ConstantPadNd):
    """A border of one value around the last two dimensions."""

    _n_dims = 2


class ConstantPad3d(_ConstantPadNd):
    """A border of one value around the last three dimensions."""

    _n_dims = 3


@define_in_subclasses("__init__", "extra_repr")
class _ZeroPad(_ConstantPadNd):
    def __init__(self, padding) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad1d(_ZeroPad, ConstantPad1d):
    """A border of zeros around the last dimension.

    Example:
        >>> nn.ZeroPad1d(1)(flambeau.ones(1, 2))
        tensor([[0., 1., 1., 0.]])
    """


class ZeroPad2d(_ZeroPad, ConstantPad2d):
    """A border of zeros around the last two dimensions."""


class ZeroPad3d(_ZeroPad, ConstantPad3d):
    """A border of zeros around the last three dimensions."""


@copy_inherited("forward", "extra_repr")
class _ReflectionPadNd(_PadNd):
    _mode = "reflect"


class ReflectionPad1d(_ReflectionPadNd):
    """A border that mirrors the inside; the edge itself is not repeated.

    Example:
        >>> nn.ReflectionPad1d(2)(flambeau.arange(4.0).view(1, 4))
        tensor([[2., 1., 0., 1., 2., 3., 2., 1.]])
    """

    _n_dims = 1


class ReflectionPad2d(_ReflectionPadNd):
    """A border around two dimensions that mirrors the inside."""

    _n_dims = 2


class ReflectionPad3d(_ReflectionPadNd):
    """A border around three dimensions that mirrors the inside."""

    _n_dims = 3


@copy_inherited("forward", "extra_repr")
class _ReplicationPadNd(_PadNd):
    _mode = "replicate"


class ReplicationPad1d(_ReplicationPadNd):
    """A border that repeats the edge.

    Example:
        >>> nn.ReplicationPad1d(2)(flambeau.arange(3.0).view(1, 3))
        tensor([[0., 0., 0., 1., 2., 2., 2.]])
    """

    _n_dims = 1


class ReplicationPad2d(_ReplicationPadNd):
    """A border around two dimensions that repeats the edge."""

    _n_dims = 2


class ReplicationPad3d(_ReplicationPadNd):
    """A border around three dimensions that repeats the edge."""

    _n_dims = 3


@copy_inherited("extra_repr")
class _CircularPadNd(_PadNd):
    _mode = "circular"

    def _check_input_dim(self, input):
        n = self._n_dims
        if input.dim() not in (n + 1, n + 2):
            raise ValueError(f"expected {n + 1}D or {n + 2}D input (got {input.dim()}D input)")

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        return F.pad(input, self.padding, self._mode)


class CircularPad1d(_CircularPadNd):
    """A border that continues with the other end.

    Example:
        >>> nn.CircularPad1d((2, 1))(flambeau.arange(3.0).view(1, 3))
        tensor([[1., 2., 0., 1., 2., 0.]])
    """

    _n_dims = 1


class CircularPad2d(_CircularPadNd):
    """A border around two dimensions that continues with the other end."""

    _n_dims = 2


class CircularPad3d(_CircularPadNd):
    """A border around three dimensions that continues with the other end."""

    _n_dims = 3
