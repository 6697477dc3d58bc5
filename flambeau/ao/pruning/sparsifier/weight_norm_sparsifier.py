"""Blocks of small weights are zero."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau
from flambeau import Tensor, nn
from flambeau.ao.pruning.sparsifier.base_sparsifier import BaseSparsifier
from flambeau.nn import functional as F

__all__ = ["WeightNormSparsifier"]

_NORMS: dict[Any, Callable[[Tensor], Tensor]] = {
    1: Tensor.abs, 2: Tensor.square, None: Tensor.square}


class WeightNormSparsifier(BaseSparsifier):
    """Holds those blocks of a matrix at zero whose elements are small on average.

    Blocks begin at the first row and column; those at the end may be cut off. The masked elements
    are what is measured, so that what was zero stays so, as long as the level does not fall.

    Args:
        sparsity_level: the share of blocks, from 0 to 1.
        sparse_block_shape: rows and columns of a block.
        zeros_per_block: how many elements of such a block are zero, the smallest ones; by default
            all.
        norm: how an element is measured: 1 (absolute values), 2 (squares, the default), or a
            function.

    >>> model = nn.Sequential(nn.Linear(4, 2))
    >>> model[0].weight.data = flambeau.tensor([[1.0, 2, 7, 8], [5, 6, 3, 4]])
    >>> sparsifier = WeightNormSparsifier(sparse_block_shape=(1, 2))
    >>> sparsifier.prepare(model, config=None)
    >>> sparsifier.step()
    >>> model[0].weight.detach()
    tensor([[0., 0., 7., 8.],
            [5., 6., 0., 0.]])
    """

    def __init__(self, sparsity_level: float = 0.5, sparse_block_shape: tuple[int, int] = (1, 4),
                 zeros_per_block: int | None = None,
                 norm: Callable[[Tensor], Tensor] | int | None = None):
        if zeros_per_block is None:
            zeros_per_block = sparse_block_shape[0] * sparse_block_shape[1]
        if callable(norm):
            self.norm_fn = norm
        elif norm in _NORMS:
            self.norm_fn = _NORMS[norm]
        else:
            raise NotImplementedError(f"L-{norm} is not yet implemented.")
        super().__init__({"sparsity_level": sparsity_level,
                          "sparse_block_shape": sparse_block_shape,
                          "zeros_per_block": zeros_per_block})

    def _small_blocks(self, sizes: Tensor, level: float, block: tuple[int, int]) -> Tensor:
        """1 for the elements of the share `level` of blocks whose mean is smallest."""
        means = F.avg_pool2d(sizes[None, None], block, stride=block, ceil_mode=True)[0, 0]
        chosen = flambeau.zeros(means.numel(), dtype=flambeau.bool)
        chosen[means.flatten().argsort(stable=True)[:round(level * means.numel())]] = True
        spread = chosen.view(means.shape).repeat_interleave(block[0], 0).repeat_interleave(
            block[1], 1)
        return spread[:sizes.shape[0], :sizes.shape[1]]

    def _small_elements(self, sizes: Tensor, count: int, block: tuple[int, int]) -> Tensor:
        """1 for the `count` smallest elements of each block."""
        (rows, columns), (height, width) = sizes.shape, block
        padded = F.pad(sizes, [0, -columns % width, 0, -rows % height], value=float("inf"))
        tall, wide = padded.shape[0] // height, padded.shape[1] // width
        parts = padded.view(tall, height, wide, width).transpose(1, 2).reshape(
            tall * wide, height * width)
        chosen = flambeau.zeros_like(parts, dtype=flambeau.bool).scatter_(
            1, parts.argsort(dim=1, stable=True)[:, :count], True)
        return chosen.view(tall, wide, height, width).transpose(1, 2).reshape(
            padded.shape)[:rows, :columns]

    def update_mask(self, module: nn.Module, tensor_name: str, sparsity_level: float,
                    sparse_block_shape: tuple[int, int], zeros_per_block: int,
                    **kwargs: Any) -> None:
        """Write the mask of a matrix.

        Raises:
            ValueError: a block has fewer elements than are to be zero.
        """
        elements = sparse_block_shape[0] * sparse_block_shape[1]
        if zeros_per_block > elements:
            raise ValueError("Number of zeros per block cannot be more than the total number of "
                             "elements in that block.")
        if zeros_per_block < 0:
            raise ValueError("Number of zeros per block should be positive.")
        mask = module.parametrizations[tensor_name][0].mask
        if sparsity_level <= 0 or zeros_per_block == 0:
            mask.fill_(1)
            return
        if sparsity_level >= 1 and zeros_per_block == elements:
            mask.fill_(0)
            return
        sizes = self.norm_fn(getattr(module, tensor_name))
        zero = self._small_blocks(sizes, sparsity_level, sparse_block_shape)
        if zeros_per_block != elements:
            zero &= self._small_elements(sizes, zeros_per_block, sparse_block_shape)
        mask.copy_(~zero)
