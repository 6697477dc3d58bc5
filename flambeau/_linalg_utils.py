"""Linear algebra that PyTorch had once, which says what to use instead, and small products that
`lobpcg` and low-rank methods are made of."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau import Tensor

_GONE = "This function was deprecated since version 1.9 and is now removed."


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
    raise RuntimeError(f"{_GONE}\nPlease use the `torch.linalg.matrix_rank` function instead. The "
                       "parameter 'symmetric' was renamed in `torch.linalg.matrix_rank()` to "
                       "'hermitian'.")


def solve(input: Tensor, A: Tensor, *, out: Any = None) -> tuple[Tensor, Tensor]:
    """Gone: `torch.linalg.solve`, with the arguments the other way round."""
    raise RuntimeError(f"{_GONE} `torch.solve` is deprecated in favor of `torch.linalg.solve`. "
                       "`torch.linalg.solve` has its arguments reversed and does not return the LU "
                       "factorization.\ntorch.solve(B, A).solution is torch.linalg.solve(A, B) "
                       "now. For the LU factorization see `torch.lu`, and `torch.lu_solve` and "
                       "`torch.lu_unpack`.")


def lstsq(input: Tensor, A: Tensor, *, out: Any = None) -> tuple[Tensor, Tensor]:
    """Gone: `torch.linalg.lstsq`, with the arguments the other way round."""
    raise RuntimeError(f"{_GONE} `torch.lstsq` is deprecated in favor of `torch.linalg.lstsq`."
                       "\ntorch.lstsq(B, A) is torch.linalg.lstsq(A, B) now, whose `solution` and "
                       "`residuals` are apart. For the QR decomposition see `torch.linalg.qr`.")


def _symeig(input: Tensor, eigenvectors: bool = False, upper: bool = True, *, out: Any = None
            ) -> tuple[Tensor, Tensor]:
    """Gone: `torch.linalg.eigh`."""
    raise RuntimeError(f"{_GONE} The default behavior has changed from using the upper "
                       "triangular portion of the matrix by default to using the lower triangular "
                       "portion.\ntorch.symeig(A, upper=upper) is torch.linalg.eigvalsh(A, "
                       "UPLO='U' if upper else 'L') now, and with eigenvectors=True "
                       "torch.linalg.eigh(A, UPLO='U' if upper else 'L').")


def eig(self: Tensor, eigenvectors: bool = False, *, e: Any = None, v: Any = None
        ) -> tuple[Tensor, Tensor]:
    """Gone: `torch.linalg.eig`."""
    raise RuntimeError(f"{_GONE} `torch.linalg.eig` returns complex tensors of dtype `cfloat` "
                       "or `cdouble` rather than real tensors mimicking complex tensors.\n"
                       "torch.eig(A) is torch.linalg.eigvals(A) now, and with "
                       "eigenvectors=True torch.linalg.eig(A).")
