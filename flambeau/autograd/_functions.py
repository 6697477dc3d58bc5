"""`torch.autograd._functions`: what is left of the time when ops were Functions."""
from __future__ import annotations

from math import prod
from typing import Any

from flambeau.autograd.function import Function
from flambeau.core.tensor import Tensor


class Resize(Function):
    """The elements of a tensor in another shape: what `Tensor.resize` did.

    >>> import flambeau
    >>> Resize.apply(flambeau.ones(2, 3), (6,)).shape
    torch.Size([6])
    """

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, sizes: Any) -> Tensor:
        if tensor.numel() != prod(sizes):
            raise RuntimeError(f"requested resize to {'x'.join(map(str, sizes))} ({prod(sizes)} "
                               "elements in total), but the given tensor has a size of "
                               f"{'x'.join(map(str, tensor.shape))} ({tensor.numel()} elements). "
                               "autograd's resize can only change the shape of a given tensor, "
                               "while preserving the number of elements. ")
        ctx.shape = tensor.shape
        return tensor.detach().contiguous().view(*sizes)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return grads[0].contiguous().view(ctx.shape), None


__all__ = ["Resize"]
