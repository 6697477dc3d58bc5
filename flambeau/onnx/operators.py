"""Shapes as tensors, which an export can follow."""
from __future__ import annotations

import flambeau
from flambeau import Tensor


def shape_as_tensor(x: Tensor) -> Tensor:
    """The sizes of a tensor.

    >>> import flambeau
    >>> shape_as_tensor(flambeau.ones(2, 3))
    tensor([2, 3])
    """
    return flambeau.tensor(x.shape, dtype=flambeau.int64)


def reshape_from_tensor_shape(x: Tensor, shape: Tensor) -> Tensor:
    """`x.reshape` to sizes that a tensor holds."""
    return x.reshape(shape.tolist())


__all__: list[str] = []
