"""Distances between the rows of two tensors."""

from __future__ import annotations

from flambeau import Tensor
from flambeau.nn import functional as F

from .module import Module

__all__ = ["CosineSimilarity", "PairwiseDistance"]


class PairwiseDistance(Module):
    r"""The p-norm of the differences along the last dimension, :math:`\|x_1 - x_2 + \epsilon\|_p`.

    Example:
        >>> nn.PairwiseDistance()(flambeau.zeros(1, 2), flambeau.tensor([[3.0, 4.0]]))
        tensor([5.0000])
    """

    __constants__ = ["norm", "eps", "keepdim"]

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Module):
    r"""The cosine of the angle: :math:`x_1 \cdot x_2 / \max(\|x_1\|\|x_2\|, \epsilon)` along `dim`.

    Example:
        >>> nn.CosineSimilarity(dim=0)(flambeau.tensor([1.0, 0.0]), flambeau.tensor([0.0, 2.0]))
        tensor(0.)
    """

    __constants__ = ["dim", "eps"]

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)
