"""Functions of matrices that PyTorch had once, and that say what to use now."""
from __future__ import annotations

from typing import Any

from flambeau.core.tensor import Tensor

GONE = "This function was deprecated since version 1.9 and is now removed."


def solve(input: Tensor, A: Tensor, *, out: Any = None) -> tuple[Tensor, Tensor]:
    """Gone: `torch.linalg.solve`, with the arguments the other way round."""
    raise RuntimeError(f"{GONE} `torch.solve` is deprecated in favor of `torch.linalg.solve`. "
                       "`torch.linalg.solve` has its arguments reversed and does not return the LU "
                       "factorization.\ntorch.solve(B, A).solution is torch.linalg.solve(A, B) "
                       "now. For the LU factorization see `torch.lu`, and `torch.lu_solve` and "
                       "`torch.lu_unpack`.")


def lstsq(input: Tensor, A: Tensor, *, out: Any = None) -> tuple[Tensor, Tensor]:
    """Gone: `torch.linalg.lstsq`, with the arguments the other way round."""
    raise RuntimeError(f"{GONE} `torch.lstsq` is deprecated in favor of `torch.linalg.lstsq`."
                       "\ntorch.lstsq(B, A) is torch.linalg.lstsq(A, B) now, whose `solution` and "
                       "`residuals` are apart. For the QR decomposition see `torch.linalg.qr`.")


def _symeig(input: Tensor, eigenvectors: bool = False, upper: bool = True, *, out: Any = None
            ) -> tuple[Tensor, Tensor]:
    """Gone: `torch.linalg.eigh`."""
    raise RuntimeError(f"{GONE} The default behavior has changed from using the upper "
                       "triangular portion of the matrix by default to using the lower triangular "
                       "portion.\ntorch.symeig(A, upper=upper) is torch.linalg.eigvalsh(A, "
                       "UPLO='U' if upper else 'L') now, and with eigenvectors=True "
                       "torch.linalg.eigh(A, UPLO='U' if upper else 'L').")


def eig(self: Tensor, eigenvectors: bool = False, *, e: Any = None, v: Any = None
        ) -> tuple[Tensor, Tensor]:
    """Gone: `torch.linalg.eig`."""
    raise RuntimeError(f"{GONE} `torch.linalg.eig` returns complex tensors of dtype `cfloat` "
                       "or `cdouble` rather than real tensors mimicking complex tensors.\n"
                       "torch.eig(A) is torch.linalg.eigvals(A) now, and with "
                       "eigenvectors=True torch.linalg.eig(A).")
