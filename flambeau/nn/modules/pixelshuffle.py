"""Channels as pixels, and back."""

from __future__ import annotations

from flambeau import Tensor
from flambeau.nn import functional as F

from .module import Module

__all__ = ["PixelShuffle", "PixelUnshuffle"]


class PixelShuffle(Module):
    """(\\*, C·r², H, W) → (\\*, C, H·r, W·r): every r² channels become r×r pixels.

    Shi et al., Real-time single image and video super-resolution, CVPR 2016.

    Example:
        >>> nn.PixelShuffle(3)(flambeau.ones(1, 9, 4, 4)).shape
        torch.Size([1, 1, 12, 12])
    """

    __constants__ = ["upscale_factor"]

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """(\\*, C, H·r, W·r) → (\\*, C·r², H, W): the inverse of `PixelShuffle`.

    Example:
        >>> nn.PixelUnshuffle(3)(flambeau.ones(1, 1, 12, 12)).shape
        torch.Size([1, 9, 4, 4])
    """

    __constants__ = ["downscale_factor"]

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"
