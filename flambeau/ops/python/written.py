"""Methods that PyTorch too writes in Python, as errors of their calls tell, and those that it had
once and that say what to use now."""
from __future__ import annotations

import warnings
from typing import Any

from flambeau.core.tensor import Tensor
from flambeau.ops.linalg import removed
from flambeau.ops.linalg.lu import lu
from flambeau.ops.python.methods import Chapter, adopt
from flambeau.ops.reduction.searching import unique, unique_consecutive
from flambeau.ops.view.reshaping import reshape


def _expect_count(tensor: Tensor, sizes: Any) -> None:
    count = 1
    for n in sizes:
        count *= n
    if count != tensor.numel():
        wanted, own = ("x".join(map(str, one)) for one in (sizes, tensor.shape))
        raise RuntimeError(
            f"requested resize to {wanted} ({count} elements in total), but the given tensor has a "
            f"size of {own} ({tensor.numel()} elements). autograd's resize can only change the "
            "shape of a given tensor, while preserving the number of elements. ")


class Written(Chapter):
    """What calls functions."""

    def unique(self, sorted: bool = True, return_inverse: bool = False,
               return_counts: bool = False, dim: int | None = None) -> Any:
        """See `flambeau.unique`."""
        return unique(self, sorted=sorted, return_inverse=return_inverse,
                      return_counts=return_counts, dim=dim)

    def unique_consecutive(self, return_inverse: bool = False, return_counts: bool = False,
                           dim: int | None = None) -> Any:
        """See `flambeau.unique_consecutive`."""
        return unique_consecutive(self, return_inverse=return_inverse,
                                  return_counts=return_counts, dim=dim)

    def lu(self, pivot: bool = True, get_infos: bool = False) -> Any:
        """See `flambeau.lu`."""
        return lu(self, pivot, get_infos)


class Gone(Chapter):
    """What PyTorch had once."""

    def eig(self, eigenvectors: bool = False) -> Any:
        """Gone: `torch.linalg.eig`."""
        return removed.eig(self, eigenvectors=eigenvectors)

    def symeig(self, eigenvectors: bool = False) -> Any:
        """Gone: `torch.linalg.eigh`."""
        return removed._symeig(self, eigenvectors=eigenvectors)

    def lstsq(self, other: Tensor) -> Any:
        """Gone: `torch.linalg.lstsq`."""
        return removed.lstsq(self, other)

    def solve(self, other: Tensor) -> Any:
        """Gone: `torch.linalg.solve`."""
        return removed.solve(self, other)

    def reinforce(self, reward: Any) -> Any:
        """Gone: a sample's `log_prob`, of `torch.distributions`, times the reward."""
        raise RuntimeError("reinforce() was removed.\nDraw from a distribution of "
                           "torch.distributions, and use -log_prob(action) * reward as the loss.")

    def resize(self, *sizes: Any) -> Any:
        """The same elements in another shape; older than `reshape`."""
        warnings.warn("non-inplace resize is deprecated", UserWarning, stacklevel=2)
        _expect_count(self, sizes)
        return reshape(self, sizes)

    def resize_as(self, tensor: Tensor) -> Any:
        """The same elements in the shape of another tensor; older than `reshape`."""
        warnings.warn("non-inplace resize_as is deprecated", UserWarning, stacklevel=2)
        sizes = tensor.size()
        _expect_count(self, sizes)
        return reshape(self, sizes)


adopt(Written, Gone)
