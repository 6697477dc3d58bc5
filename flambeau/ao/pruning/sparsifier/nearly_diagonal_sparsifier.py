"""Matrices that are zero away from their diagonal."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau import nn
from flambeau.ao.pruning.sparsifier.base_sparsifier import BaseSparsifier


class NearlyDiagonalSparsifier(BaseSparsifier):
    """Keeps the `nearliness` diagonals of a matrix next to the main one, and that.

    Element (i, j) stays where abs(i - j) <= (nearliness - 1) / 2.

    Args:
        nearliness: how many diagonals, an odd number.

    >>> model = nn.Sequential(nn.Linear(4, 4))
    >>> sparsifier = NearlyDiagonalSparsifier(nearliness=3)
    >>> sparsifier.prepare(model, config=None)
    >>> sparsifier.step()
    >>> (model[0].weight != 0).int()
    tensor([[1, 1, 0, 0],
            [1, 1, 1, 0],
            [0, 1, 1, 1],
            [0, 0, 1, 1]], dtype=torch.int32)
    """

    def __init__(self, nearliness: int = 1):
        super().__init__(defaults={"nearliness": nearliness})

    def update_mask(self, module: nn.Module, tensor_name: str, nearliness: int,
                    **kwargs: Any) -> None:
        """Write the mask of a matrix.

        Raises:
            ValueError: `nearliness` is even, or larger than the matrix.
        """
        mask = module.parametrizations[tensor_name][0].mask
        if nearliness <= 0:
            mask.fill_(0)
            return
        rows, columns = mask.shape
        distance = nearliness // 2
        if nearliness % 2 == 0:
            raise ValueError("nearliness can only be an odd number")
        if distance >= min(rows, columns):
            raise ValueError("nearliness cannot be larger than the dimensions of tensor.")
        mask.copy_(flambeau.ones_like(mask).tril(distance).triu(-distance))
