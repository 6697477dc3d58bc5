"""Orthogonal factors of matrices, singular values and eigenvalues, over leading dimensions.

As `lapack.py` says. The compiled kernels are for small matrices of real numbers.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from flambeau.kernels.linalg.blas import numpy_for
from flambeau.kernels.linalg.empty_matrices import compiled
from flambeau.kernels.linalg.fortran import call_each, integers
from flambeau.kernels.linalg.lapack import (
    LinAlgError,
    call,
    columns,
    fits,
    flattened,
    joined,
    matrices,
    raise_failure,
    run_numpy,
    unflattened,
)
from flambeau.kernels.moving import views

# ---- QR, and reflections ------------------------------------------------------------------------


@compiled("qr")
def qr(a: np.ndarray, mode: str) -> tuple[np.ndarray, np.ndarray]:
    """Q with orthonormal columns and upper triangular R."""
    matrices(a)
    fits(mode in ("reduced", "complete", "r"))
    a = a + a.dtype.type(0)     # reflections go by signs: both zeros count as positive
    if mode == "r":
        return np.zeros(0, a.dtype), columns(run_numpy(np.linalg.qr, a, "r"))
    q, r = run_numpy(np.linalg.qr, a, mode)
    return columns(q), columns(r)


@compiled("geqrf")
def geqrf(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Householder's vectors below R, and their factors."""
    matrices(a)
    h, tau = run_numpy(np.linalg.qr, a + a.dtype.type(0), "raw")
    return columns(h.swapaxes(-1, -2).astype(a.dtype, copy=False)), np.asarray(tau, a.dtype)


@compiled("householder_product")
def householder_product(a: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """The first columns of the product of the reflections in the columns of `a`."""
    matrices(a)
    m, n = a.shape[-2:]
    fits(tau.ndim > 0 and m >= n >= tau.shape[-1] and tau.dtype == a.dtype
         and tau.shape[:-1] == a.shape[:-2])
    eye = np.broadcast_to(np.eye(m, n, dtype=a.dtype), a.shape)
    return _reflected(a, tau, eye, False)


@compiled("ormqr")
def ormqr(a: np.ndarray, tau: np.ndarray, c: np.ndarray, left: bool, transpose: bool) -> np.ndarray:
    """Q c, or c Q, or with Qᴴ, where Q is the product of the reflections in the columns of `a`."""
    matrices(a, c)
    rows = c.shape[-2 if left else -1]
    fits(rows == a.shape[-2] and tau.dtype == a.dtype and tau.ndim == a.ndim - 1
         and tau.shape[-1] == min(rows, a.shape[-1])
         and a.shape[:-2] == tau.shape[:-1] == c.shape[:-2])
    if left:
        return _reflected(a, tau, c, transpose)
    turned = _reflected(a, tau, c.conj().swapaxes(-1, -2), not transpose)
    return columns(turned.conj().swapaxes(-1, -2))


_BLOCKED = 32       # for fewer columns LAPACK is faster without blocks, which need more room


def _reflected(a: np.ndarray, tau: np.ndarray, x: np.ndarray, adjoint_of: bool) -> np.ndarray:
    """Q x, or Qᴴ x, where Q is the product of the reflections in the columns of `a` (`geqrf`)."""
    lead = a.shape[:-2]
    if not x.size or not tau.size:
        return columns(x.copy())
    k = tau.shape[-1]
    name = "unmqr" if a.dtype.kind == "c" else "ormqr"
    turn = b"N" if not adjoint_of else b"C" if a.dtype.kind == "c" else b"T"
    (m, p), right = x.shape[-2:], flattened(x, lead)
    vectors = flattened(a[..., :k], lead)               # while it runs, LAPACK writes into it
    factors = np.ascontiguousarray(views.expand(tau, (*lead, k)).reshape(len(right), k))
    work = np.empty(p * 64 + (65 * 64 if p >= _BLOCKED else 0), a.dtype)
    call(a, name, b"L", turn, m, p, k, vectors, m, factors, right, m, (work,), work.size,
          integers(len(right)))
    return unflattened(right, lead)


# ---- singular values ----------------------------------------------------------------------------


@compiled("svd", empty="eW8")
def svd(a: np.ndarray, full: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """U, the singular values and Vᴴ; `full`: with all columns of U and rows of Vᴴ."""
    matrices(a)
    try:
        u, s, vh = run_numpy(np.linalg.svd, a, full)
    except np.linalg.LinAlgError:
        raise not_converged("linalg.svd", a) from None
    return columns(u), s, columns(vh)


@compiled("svdvals", empty="eW8")
def svdvals(a: np.ndarray) -> np.ndarray:
    """The singular values, falling."""
    matrices(a)
    try:
        return run_numpy(np.linalg.svd, a, compute_uv=False)
    except np.linalg.LinAlgError:
        raise not_converged("linalg.svd", a) from None


def not_converged(name: str, a: np.ndarray, repeated: str = "singular values") -> LinAlgError:
    bad = ~np.isfinite(a).all((-2, -1))
    if bad.any():
        name += f": (Batch element {int(np.flatnonzero(bad)[0])})" if a.ndim > 2 else ""
        return LinAlgError(f"{name}: The algorithm failed to converge because the input matrix "
                           "contained non-finite values.")
    return LinAlgError(f"{name}: The algorithm failed to converge because the input matrix is "
                       f"ill-conditioned or has too many repeated {repeated}.")


# ---- eigenvalues --------------------------------------------------------------------------------


@compiled("eigh", empty="bBilUeW8")
def eigh(a: np.ndarray, uplo: str) -> tuple[np.ndarray, np.ndarray]:
    """The eigenvalues, rising, and eigenvectors of a Hermitian matrix, read from one triangle."""
    matrices(a, square=True)
    fits(uplo.upper() in ("L", "U"))
    try:
        values, vectors = run_numpy(np.linalg.eigh, a, uplo.upper())
    except np.linalg.LinAlgError:
        raise not_converged("linalg.eigh", a, "eigenvalues") from None
    return values, columns(vectors)


@compiled("eigvalsh", empty="bBilUeW8")
def eigvalsh(a: np.ndarray, uplo: str) -> np.ndarray:
    """The eigenvalues of a Hermitian matrix, rising."""
    matrices(a, square=True)
    fits(uplo.upper() in ("L", "U"))
    try:
        return run_numpy(np.linalg.eigvalsh, a, uplo.upper())
    except np.linalg.LinAlgError:
        raise not_converged("linalg.eigh", a, "eigenvalues") from None


@compiled("eig")
def eig(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The eigenvalues, in no order, and eigenvectors; both complex."""
    matrices(a, square=True)
    if not np.isfinite(a).all():
        raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")
    wide = np.complex64 if a.dtype.itemsize == (8 if a.dtype.kind == "c" else 4) else np.complex128
    values, vectors = run_numpy(np.linalg.eig, a)
    return values.astype(wide, copy=False), columns(vectors.astype(wide, copy=False))


@compiled("eigvals")
def eigvals(a: np.ndarray) -> np.ndarray:
    """The eigenvalues, in no order."""
    matrices(a, square=True)
    if not np.isfinite(a).all():
        raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")
    wide = np.complex64 if a.dtype.itemsize == (8 if a.dtype.kind == "c" else 4) else np.complex128
    return run_numpy(np.linalg.eigvals, a).astype(wide, copy=False)


# ---- ranks and pseudo-inverses ------------------------------------------------------------------


def tolerance(a: np.ndarray, size: np.ndarray, atol: Any, rtol: Any) -> np.ndarray:
    """max(atol, rtol · the largest singular value); by default rtol is eps · max(m, n)."""
    largest = size.max(-1, initial=0) if size.shape[-1] else np.zeros(size.shape[:-1], size.dtype)
    eps = np.finfo(size.dtype).eps * max(a.shape[-2:])
    absolute = np.asarray(0.0 if atol is None else atol)
    if rtol is None:
        relative: Any = np.where(absolute > 0, 0.0, eps)
    else:
        relative = np.asarray(rtol)
    return np.maximum(absolute, relative * largest).astype(size.dtype)


@compiled("matrix_rank")
def matrix_rank(a: np.ndarray, atol: Any, rtol: Any, hermitian: bool) -> np.ndarray:
    """How many singular values are above the tolerance."""
    matrices(a, square=hermitian)
    size = np.abs(eigvalsh(a, "L")) if hermitian else svdvals(a)
    return np.asarray(np.sum(size > tolerance(a, size, atol, rtol)[..., None], -1, dtype=np.int64))


@compiled("pinv")
def pinv(a: np.ndarray, atol: Any, rtol: Any, hermitian: bool) -> np.ndarray:
    """The Moore-Penrose inverse; singular values up to the tolerance count as zero."""
    matrices(a, square=hermitian and a.size > 0)
    if not a.size:
        return np.zeros((*a.shape[:-2], *a.shape[:-3:-1]), a.dtype)
    if hermitian:
        values, vectors = eigh(a, "L")
        size, left = np.abs(values), vectors * np.sign(values)[..., None, :]
        right = np.conj(np.swapaxes(vectors, -1, -2))
    else:
        left, size, right = svd(a, False)
    limit = tolerance(a, size, atol, rtol)
    keep = size > limit[..., None]
    reciprocal = np.where(keep, 1 / np.where(keep, size, 1), 0).astype(size.dtype)
    back = np.conj(np.swapaxes(right, -1, -2)) * reciprocal[..., None, :]
    return np.ascontiguousarray(np.matmul(back, np.conj(np.swapaxes(left, -1, -2))))


# ---- least squares ------------------------------------------------------------------------------


@compiled("lstsq")
def lstsq(a: np.ndarray, b: np.ndarray, rcond: float | None, driver: str | None
          ) -> tuple[Any, ...]:
    """Least squares: solution, squared residuals, rank, singular values."""
    driver = driver or "gelsy"
    fits(driver in ("gels", "gelsy", "gelsd", "gelss") and a.ndim > 1
         and 0 <= a.ndim - b.ndim <= 1)
    vector = a.ndim - 1 == b.ndim and b.shape == a.shape[:-1]
    if vector:
        b = b[..., None]
    matrices(a, b)
    fits(a.shape[-2] == b.shape[-2])
    joined(a, b)
    if b.ndim < a.ndim:                         # counts as a batch of vectors: the check says so
        joined(a, b[..., None])
    x, residuals, rank, values = _least_squares(a, b, rcond, driver)
    if vector:
        x = x[..., 0]
    return x, residuals, rank, values


def _least_squares(a: np.ndarray, b: np.ndarray, rcond: float | None, driver: str
                   ) -> tuple[Any, ...]:
    m, n = a.shape[-2:]
    real = a.real.dtype
    cond = rcond if rcond is not None else float(np.finfo(real).eps) * max(m, n)
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    nothing = np.zeros(0, real)
    if not a.size or not b.size:
        k, whole = b.shape[-1], m > n and driver != "gelsy"
        return (columns(np.zeros((*lead, max(m, n), k), b.dtype))[..., :n, :],
                np.zeros((*lead, k), real) if whole else nothing,
                np.zeros(0 if driver == "gels" else lead, np.int64),
                np.zeros((*lead, min(m, n)), real) if driver in ("gelsd", "gelss") else nothing)
    written, rank, values = _lstsq(flattened(a, lead), flattened(b, lead), cond, driver, lead)
    # LAPACK wrote the solution over `b`; where that has more rows, what is left of it stands below
    x, rest = np.split(unflattened(written, lead), [n], -2)
    residuals = nothing
    if m > n and driver != "gelsy" and (driver == "gels" or (rank == n).all()):
        residuals = np.sum((rest * rest.conj()).real, -2)
    return (x, residuals, np.zeros(0, np.int64) if driver == "gels" else
            rank.reshape(lead).astype(np.int64),
            nothing if values is None else values.reshape(*lead, -1))


def _lstsq(a: np.ndarray, b: np.ndarray, cond: float, driver: str, lead: tuple[int, ...]
           ) -> tuple[Any, ...]:
    """What LAPACK writes over `b`, ranks and singular values (of the drivers with SVD)."""
    items, n, m = a.shape
    k, dtype, real = b.shape[1], a.dtype, a.real.dtype
    rank, info = integers(items), integers(items)
    tall = np.zeros((items, k, max(m, n)), dtype)       # LAPACK writes the solution over it
    tall[:, :, :m] = b
    found = integers(items, n) if driver == "gelsy" else np.zeros((items, min(m, n)), real)
    limit = (np.full(1, cond, real),)

    def run(count: int, work: np.ndarray, length: int, rest: list[Any]) -> None:
        equations = (m, n, k, a[:count], m, tall[:count], tall.shape[-1])
        given = (b"N", *equations) if driver == "gels" else (
            *equations, found[:count], limit, rank[:count])
        with numpy_for(a):
            call_each(driver, dtype, *given, (work,), length, *rest, info[:count])

    # how long they are to be, a call with the length -1 writes into the workspaces
    small = [np.zeros(1, dtype), np.zeros(1, real), integers(1)]
    kinds = [1] if dtype.kind == "c" and driver != "gels" else []
    if driver == "gelsd":
        kinds.append(2)
    run(1, small[0], -1, [(small[i],) for i in kinds])
    lengths = {1: {"gelsy": 2 * n, "gelss": 5 * min(m, n)}.get(driver, int(small[1][0])),
               2: int(small[2][0])}
    work = np.empty(int(small[0][0].real), dtype)
    rest = [np.empty(max(1, lengths[i]), small[i].dtype) for i in kinds]
    run(items, work, work.size, [(r,) for r in rest])
    raise_failure(info.reshape(lead), "torch.linalg.lstsq", "The least squares solution could not "
                  "be computed because the input matrix does not have full rank (error code: {}).")
    return tall, rank, found if driver in ("gelsd", "gelss") else None
