"""Approximate factorisations: randomised low-rank ones, and a few extreme eigenvalues.

    Halko, Martinsson and Tropp, Finding structure with randomness: probabilistic algorithms for
        constructing approximate matrix decompositions, 2011
    Knyazev, Toward the optimal preconditioned eigensolver: locally optimal block preconditioned
        conjugate gradient method, 2001
"""
from __future__ import annotations

from typing import Any

from flambeau.core.dtypes import float16, float32, float64
from flambeau.core.tensor import Tensor
from flambeau.dispatch.python_functions import python_function
from flambeau.ops.linalg.decompositions import linalg_cholesky, linalg_qr, linalg_svd
from flambeau.ops.linalg.eigenvalues import eigh
from flambeau.ops.linalg.solvers import solve_triangular
from flambeau.ops.linalg.support import adjoint, matmul
from flambeau.ops.random.draws import randn
from flambeau.ops.view.join import cat
from flambeau.ops.view.rearranging import flip
from flambeau.ops.view.splitting import narrow


def _approximate_range(A: Tensor, q: int, niter: int, M: Tensor | None) -> Tensor:
    """Orthonormal columns that nearly span what A maps to: A applied to random vectors, again and
    again."""
    def apply(X: Tensor) -> Tensor:
        return matmul(A, X) if M is None else matmul(A, X) - matmul(M, X)

    def back(X: Tensor) -> Tensor:
        found = matmul(adjoint(A), X)
        return found if M is None else found - matmul(adjoint(M), X)
    kept = A.is_complex() or A.dtype in (float16, float32, float64)
    Q = linalg_qr(apply(randn(A._array.shape[-1], q, dtype=A.dtype if kept else float32))).Q
    for _ in range(niter):
        Q = linalg_qr(back(Q)).Q
        Q = linalg_qr(apply(Q)).Q
    return Q


@python_function(module="_lowrank")
def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2,
                M: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """The `q` largest singular values of A (of A - M) and their vectors, nearly: U, S, V.

    >>> import flambeau
    >>> U, S, V = flambeau.svd_lowrank(flambeau.ones(5, 4), q=2)
    >>> bool(abs(S[0] - 20 ** 0.5) < 1e-4)
    True
    """
    q = 6 if q is None else q
    m, n = A.shape[-2:]
    if M is not None:
        M = M.broadcast_to(A.shape)
    wide = m < n
    if wide:
        A, M = adjoint(A), None if M is None else adjoint(M)
    Q = _approximate_range(A, q, niter or 0, M)
    B = matmul(adjoint(Q), A)
    if M is not None:
        B = B - matmul(adjoint(Q), M)
    U, S, Vh = linalg_svd(B, full_matrices=False)
    U, V = matmul(Q, U), adjoint(Vh)
    return (V, S, U) if wide else (U, S, V)


@python_function(module="_lowrank")
def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True,
                niter: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """`svd_lowrank` of a matrix (samples, features), by default without the columns' means: its
    principal components."""
    m, n = A.shape[-2:]
    if q is None:
        q = min(6, m, n)
    elif not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)="
                         f"{min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    if center:
        A = A - A.mean(dim=-2, keepdim=True)
    return svd_lowrank(A, q, niter=niter, M=None)


def _orthonormalize(S: Tensor, B: Tensor | None) -> Tensor:
    """The columns of S made orthonormal in the inner product of B."""
    S = linalg_qr(S).Q
    if B is None:
        return S
    L = linalg_cholesky(matmul(adjoint(S), matmul(B, S)))
    return adjoint(solve_triangular(L, adjoint(S), upper=False))


def _lobpcg(A: Tensor, B: Tensor | None, X: Tensor, iK: Tensor | None, niter: int, tol: float,
            largest: bool) -> tuple[Tensor, Tensor]:
    """Rayleigh and Ritz on the span of the vectors, their (preconditioned) residuals, and the last
    directions."""
    k = X._array.shape[-1]
    X = _orthonormalize(X, B)
    P = None
    size = float(A.norm()) + (0.0 if B is None else float(B.norm()))
    for _ in range(niter + 1):
        E, Z = _ritz_pairs(A, X, k, largest)
        X = matmul(X, Z)
        BX = X if B is None else matmul(B, X)
        R = matmul(A, X) - BX * E.unsqueeze(-2)
        if float(R.norm(dim=-2).max()) <= tol * size:
            break
        W = R if iK is None else matmul(iK, R)
        basis_of = [X, W] if P is None else [X, W, P]
        S = cat(basis_of, -1)
        if S._array.shape[-1] > S._array.shape[-2]:
            S = cat([X, W], -1) if 2 * k <= S._array.shape[-2] else X
        S = _orthonormalize(S, B)
        E, Z = _ritz_pairs(A, S, k, largest)
        new = matmul(S, Z)
        overlap = matmul(adjoint(X if B is None else matmul(B, X)), new)
        P, X = new - matmul(X, overlap), new
    E, Z = _ritz_pairs(A, X, k, largest)
    return E, matmul(X, Z)


def _ritz_pairs(A: Tensor, S: Tensor, k: int, largest: bool) -> tuple[Tensor, Tensor]:
    """The k extreme eigenpairs of A on the span of S."""
    return _extreme_pairs(matmul(adjoint(S), matmul(A, S)), k, largest)


@python_function(module="_lobpcg")
def lobpcg(A: Tensor, k: int | None = None, B: Tensor | None = None, X: Tensor | None = None,
           n: int | None = None, iK: Tensor | None = None, niter: int | None = None,
           tol: float | None = None, largest: bool | None = None, method: str | None = None,
           tracker: Any = None, ortho_iparams: Any = None, ortho_fparams: Any = None,
           ortho_bparams: Any = None) -> tuple[Tensor, Tensor]:
    """The `k` largest (or smallest) eigenvalues of a symmetric A, and their vectors, by iteration;
    of the pencil (A, B), if B is given. `X` is where to start, `iK` a preconditioner.

    >>> import flambeau
    >>> E, _ = flambeau.lobpcg(flambeau.diag(flambeau.arange(1.0, 10.0)), k=1)
    >>> bool(abs(E[0] - 9) < 1e-3)
    True
    """
    if method not in (None, "basic", "ortho"):
        raise ValueError(f"method={method!r} must be 'basic' or 'ortho'")
    if tracker is not None:
        raise NotImplementedError("lobpcg: tracker")
    differentiable = A.requires_grad or (B is not None and B.requires_grad)
    m = A.shape[-1]
    if A.shape[-2] != m:
        raise AssertionError(f"A must be square, got shape {A.shape}")
    k = (1 if X is None else X.shape[-1]) if k is None else k
    n = (k if X is None else X.shape[-1]) if n is None else n
    if m < 3 * n:
        raise ValueError(f"LOBPCG algorithm is not applicable when the number of A rows (={m}) is "
                         f"smaller than 3 x the number of requested eigenpairs (={n})")
    tol = {4: 1.2e-3, 8: 2.2e-7}.get(A._array.itemsize, 1e-6) if tol is None else tol
    if X is None:
        X = randn(*A._array.shape[:-1], n, dtype=A.dtype)
    steps = 1000 if niter is None or niter < 0 else niter
    largest = True if largest is None else largest
    if differentiable:
        return _lobpcg_by_eigh(A, B, k, largest)
    E, V = _lobpcg(A, B, X, iK, steps, tol * tol if tol > 1e-4 else tol, largest)
    return narrow(E, -1, 0, k), narrow(V, -1, 0, k)


def _lobpcg_by_eigh(A: Tensor, B: Tensor | None, k: int, largest: bool) -> tuple[Tensor, Tensor]:
    """By `eigh`, which has derivatives; those of A and B are symmetric, as A and B are."""
    A = symmetric_part(A)
    if B is None:
        return _extreme_pairs(A, k, largest)
    L = linalg_cholesky(symmetric_part(B))
    left = solve_triangular(L, A, upper=False)
    E, Y = _extreme_pairs(adjoint(solve_triangular(L, adjoint(left), upper=False)), k, largest)
    return E, solve_triangular(adjoint(L), Y, upper=True)


def symmetric_part(A: Tensor) -> Tensor:
    A = A.to_dense() if A.is_sparse else A
    return (A + adjoint(A)) / 2


def _extreme_pairs(A: Tensor, k: int, largest: bool) -> tuple[Tensor, Tensor]:
    E, V = eigh(A)
    n = E._array.shape[-1]
    if largest:
        return flip(narrow(E, -1, n - k, k), (-1,)), flip(narrow(V, -1, n - k, k), (-1,))
    return narrow(E, -1, 0, k), narrow(V, -1, 0, k)
