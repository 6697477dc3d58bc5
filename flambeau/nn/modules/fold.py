"""Sliding blocks of an image as columns of a matrix, and back."""

from __future__ import annotations

from flambeau import Tensor
from flambeau.nn import functional as F
from flambeau.nn.common_types import _size_any_t

from .module import Module

__all__ = ["Fold", "Unfold"]


class Fold(Module):
    """Add up blocks, given as columns, at their places in an image of `output_size`.

    Shape: (N, C · Πkernel, L) → (N, C, \\*output_size), L being the number of blocks.

    Example:
        >>> nn.Fold(output_size=(4, 5), kernel_size=(2, 2))(flambeau.ones(1, 12, 12)).shape
        torch.Size([1, 3, 4, 5])
    """

    __constants__ = ["output_size", "kernel_size", "dilation", "padding", "stride"]

    def __init__(self, output_size: _size_any_t, kernel_size: _size_any_t,
                 dilation: _size_any_t = 1, padding: _size_any_t = 0,
                 stride: _size_any_t = 1) -> None:
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding,
                      self.stride)

    def extra_repr(self) -> str:
        return (f"output_size={self.output_size}, kernel_size={self.kernel_size}, "
                f"dilation={self.dilation}, padding={self.padding}, stride={self.stride}")


class Unfold(Module):
    """The blocks under a sliding window, as columns.

    Shape: (N, C, H, W) → (N, C · Πkernel, L), L being the number of blocks.

    Example:
        >>> nn.Unfold(kernel_size=(2, 3))(flambeau.ones(2, 5, 3, 4)).shape
        torch.Size([2, 30, 4])
    """

    __constants__ = ["kernel_size", "dilation", "padding", "stride"]

    def __init__(self, kernel_size: _size_any_t, dilation: _size_any_t = 1,
                 padding: _size_any_t = 0, stride: _size_any_t = 1) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, "
            f"stride={self.stride}")
