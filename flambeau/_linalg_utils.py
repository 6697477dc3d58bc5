"""Linear algebra that PyTorch had once, which says what to use instead, and small products that
`lobpcg` and low-rank methods are made of."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau import Tensor
from flambeau._support.own_methods import adopt
from flambeau.ops.linalg.removed import GONE
from flambeau.ops.linalg.removed import _symeig as _symeig
from flambeau.ops.linalg.removed import eig as eig
from flambeau.ops.linalg.removed import lstsq as lstsq
from flambeau.ops.linalg.removed import solve as solve


def is_sparse(A: Any) -> bool:
    """Is this a sparse tensor?"""
    if isinstance(A, Tensor):
        return A.layout is flambeau.sparse_coo
    raise TypeError(f"expected Tensor, but got {type(A)}")


def get_floating_dtype(A: Tensor) -> Any:
    """The dtype of a tensor, or float32 for integers."""
    return A.dtype if A.dtype.is_floating_point else flambeau.float32


def matmul(A: Tensor | None, B: Tensor) -> Tensor:
    """A @ B; None stands for the identity."""
    return B if A is None else flambeau.sparse.mm(A, B) if is_sparse(A) else flambeau.matmul(A, B)


def bform(X: Tensor, A: Tensor | None, Y: Tensor) -> Tensor:
    """Xᵀ A Y."""
    return matmul(X.mT, matmul(A, Y))


def qform(A: Tensor | None, S: Tensor) -> Tensor:
    """Sᵀ A S."""
    return bform(S, A, S)


def basis(A: Tensor) -> Tensor:
    """An orthogonal basis of the columns of a matrix."""
    return flambeau.linalg.qr(A).Q


def symeig(A: Tensor, largest: bool | None = False) -> tuple[Tensor, Tensor]:
    """Eigenvalues and eigenvectors of a symmetric matrix, the smallest or the largest first."""
    values, vectors = flambeau.linalg.eigh(A, UPLO="U")
    if largest:
        values, vectors = flambeau.flip(values, dims=(-1,)), flambeau.flip(vectors, dims=(-1,))
    return values, vectors


# ---- what is gone --------------------------------------------------------------------------------


def matrix_rank(input: Tensor, tol: Any = None, symmetric: bool = False, *, out: Any = None
                ) -> Tensor:
    """Gone: `torch.linalg.matrix_rank`."""
    raise RuntimeError(f"{GONE}\nPlease use the `torch.linalg.matrix_rank` function instead. The "
                       "parameter 'symmetric' was renamed in `torch.linalg.matrix_rank()` to "
                       "'hermitian'.")


adopt(globals(), "ops.linalg.removed")
