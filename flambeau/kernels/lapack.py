"""Matrix factorisations of arrays: NumPy's and SciPy's LAPACK, over leading dimensions.

Matrices are the last two dimensions. Results that LAPACK lays out by columns keep that layout, as
in torch. Failures are numbers in `info`, not exceptions, so that one bad matrix does not spoil a
batch.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau.kernels import views
from flambeau.kernels.blas import numpy_for, scipy_for


class LinAlgError(RuntimeError):
    """A factorisation, solution or inverse that does not exist or did not converge."""


LinAlgError.__module__, LinAlgError.__name__ = "torch._C", "_LinAlgError"    # as torch shows it


def columns(a: np.ndarray) -> np.ndarray:
    """`a` with each matrix laid out column by column."""
    return np.ascontiguousarray(np.swapaxes(a, -1, -2)).swapaxes(-1, -2)


def columns_first(a: np.ndarray) -> np.ndarray:
    """A copy of a matrix that LAPACK may overwrite, column by column."""
    return views.contiguous(a.T).T


def _numpy(function: Callable[..., Any], a: np.ndarray, *rest: Any, **named: Any) -> Any:
    with numpy_for(a):
        return function(a, *rest, **named)


def over_batch(function: Callable[..., Any], *given: tuple[np.ndarray, int]) -> tuple[Any, ...]:
    """`function`, which calls SciPy, for each item of the batch; `given` are arrays with their
    ranks in an item."""
    with scipy_for(*[a for a, _ in given]):
        return _over_batch(function, *given)


def _over_batch(function: Callable[..., Any], *given: tuple[np.ndarray, int]) -> tuple[Any, ...]:
    if all(a.ndim == rank for a, rank in given):
        return tuple([np.asarray(r, order="F") for r in function(*[a for a, _ in given])])
    lead = np.broadcast_shapes(*[a.shape[:a.ndim - rank] for a, rank in given])
    flat = [np.broadcast_to(a, lead + a.shape[a.ndim - rank:]).reshape(
        (-1, *a.shape[a.ndim - rank:]) if 0 not in lead and a.size else
        (int(np.prod(lead)), *a.shape[a.ndim - rank:])) for a, rank in given]
    if 0 in lead:
        made = [function(*[np.zeros(f.shape[1:], f.dtype) for f in flat])]
        return tuple(np.empty((*lead, *np.shape(r)), np.asarray(r).dtype) for r in made[0])
    made = [function(*item) for item in zip(*flat)]
    results = []
    for parts in zip(*made):
        whole = np.stack([np.asarray(p) for p in parts])
        whole = whole.reshape(lead + whole.shape[1:])
        results.append(columns(whole) if np.ndim(parts[0]) == 2 else whole)
    return tuple(results)


def _lapack(names: str, *arrays: np.ndarray) -> Any:
    from scipy.linalg import get_lapack_funcs
    found = get_lapack_funcs(tuple(names.split()), arrays)
    return found if len(found) > 1 else found[0]


def no_info(a: np.ndarray) -> np.ndarray:
    return np.zeros(a.shape[:-2], np.int32)


# ---- triangular factors -------------------------------------------------------------------------


def cholesky(a: np.ndarray, upper: bool) -> tuple[np.ndarray, np.ndarray]:
    """L with L Lᴴ = a (of which the lower triangle is read), or U with Uᴴ U = a (the upper), and
    where it failed."""
    if a.ndim > 2 or not a.size:
        try:
            return columns(_numpy(np.linalg.cholesky, a, upper=upper)), no_info(a)
        except np.linalg.LinAlgError:
            pass

    def one(matrix: np.ndarray) -> Any:
        factor, info = _lapack("potrf", matrix)(columns_first(matrix), lower=not upper, clean=1,
                                                overwrite_a=1)
        return factor, np.int32(info)
    return over_batch(one, (a, 2))


def lu_factor(a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Both factors in one matrix, row exchanges counted from 1, and the first zero pivot."""
    m, n = a.shape[-2:]
    if not a.size:
        k, lead = min(m, n), a.shape[:-2]
        return a.copy(), np.zeros((*lead, k), np.int32), np.zeros(lead, np.int32)
    getrf = _lapack("getrf", a)

    def one(matrix: np.ndarray) -> Any:
        factors, pivots, info = getrf(matrix)
        return factors, pivots.astype(np.int32) + np.int32(1), np.int32(info)
    return over_batch(one, (a, 2))


def permutation_of(pivots: np.ndarray, m: int) -> np.ndarray:
    """The rows' places after the exchanges: row i of P a ... is row `places[i]` of a."""
    k = pivots.shape[-1]
    lead = pivots.shape[:-1]
    places = np.broadcast_to(np.arange(m), (*lead, m)).copy().reshape(int(np.prod(lead)), m)
    rows = np.arange(len(places))
    for i, target in enumerate(pivots.reshape(len(places), k).T.astype(np.int64) - 1):
        places[rows, i], places[rows, target] = places[rows, target], places[rows, i].copy()
    return places.reshape(*lead, m)


def permutation_matrix(pivots: np.ndarray, m: int, dtype: Any) -> np.ndarray:
    """P with a = P L U."""
    places = permutation_of(pivots, m)
    return (np.arange(m)[:, None] == places[..., None, :]).astype(dtype)


def ldl_factor(a: np.ndarray, hermitian: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bunch and Kaufman's factors of a symmetric matrix, read from its lower triangle."""
    if not a.size:
        return a.copy(), np.zeros(a.shape[:-1], np.int32), no_info(a)
    name = "hetrf" if hermitian and a.dtype.kind == "c" else "sytrf"
    factor = _lapack(name, a)

    def one(matrix: np.ndarray) -> Any:
        ld, pivots, info = factor(matrix, lower=1)
        return np.tril(ld), pivots.astype(np.int32), np.int32(info)
    return over_batch(one, (a, 2))


def ldl_layout(pivots: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What `ldl_factor`'s pivots say: the matrix P, the row in which each element of L is kept (a
    later exchange of rows does not move what is there), and the places below the diagonal that
    belong to blocks of two rows."""
    n = pivots.shape[-1]

    def one(found: np.ndarray) -> Any:
        order, rows = np.arange(n), np.repeat(np.arange(n)[:, None], n, 1)
        pairs, k = np.zeros((n, n), bool), 0
        while k < n:
            last = k + (found[k] < 0 and k + 1 < n)
            pairs[last, k] = last > k
            other = min(max(abs(int(found[k])) - 1, 0), n - 1)
            order[[last, other]] = order[[other, last]]
            rows[[last, other], :k] = rows[[other, last], :k]
            k = last + 1
        return np.eye(n)[order], rows, pairs
    return over_batch(one, (pivots, 1))


def ldl_solve(ld: np.ndarray, pivots: np.ndarray, b: np.ndarray, hermitian: bool) -> np.ndarray:
    """A⁻¹ b from `ldl_factor`'s results. LAPACK does not check which rows it is to exchange."""
    name = "hetrs" if hermitian and ld.dtype.kind == "c" else "sytrs"
    lead = np.broadcast_shapes(ld.shape[:-2], b.shape[:-2])
    if not b.size or 0 in lead:
        return np.zeros((*lead, *b.shape[-2:]), b.dtype)
    if not ((pivots != 0) & (np.abs(pivots) <= ld.shape[-1])).all():
        raise RuntimeError("torch.linalg.ldl_solve: pivots are not those of a factorisation")
    solve_one = _lapack(name, ld, b)
    return over_batch(lambda f, p, right: (solve_one(f, p, right, lower=1)[0],),
                      (ld, 2), (pivots, 1), (b, 2))[0]


# ---- linear equations ---------------------------------------------------------------------------


def solve(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x with a x = b, and for each matrix its first zero pivot (0: none)."""
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    try:
        return columns(_numpy(np.linalg.solve, a, b)), np.zeros(lead, np.int32)
    except np.linalg.LinAlgError:
        found_at = lu_factor(a)[2]
        info = np.broadcast_to(found_at, lead).copy()
        safe = np.where(found_at[..., None, None] != 0, np.eye(a.shape[-1], dtype=a.dtype), a)
        found = _numpy(np.linalg.solve, safe, b)
        found[info != 0] = np.nan
        return columns(found), info


def inv(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The inverse, and for each matrix its first zero pivot."""
    try:
        return columns(_numpy(np.linalg.inv, a)), no_info(a)
    except np.linalg.LinAlgError:
        info = lu_factor(a)[2]
        bad = (info != 0)[..., None, None]
        found = np.linalg.inv(np.where(bad, np.eye(a.shape[-1], dtype=a.dtype), a))
        return columns(np.where(bad, a.dtype.type(np.nan), found)), info


def solve_triangular(a: np.ndarray, b: np.ndarray, upper: bool, unitriangular: bool) -> np.ndarray:
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    if not b.size or not a.size:
        return np.zeros((*lead, *b.shape[-2:]), b.dtype)
    from scipy.linalg import get_blas_funcs
    trsm = get_blas_funcs("trsm", (a, b))

    def one(matrix: np.ndarray, right: np.ndarray) -> Any:
        turned = matrix.flags.c_contiguous      # BLAS reads columns: else the matrix is copied
        return (trsm(1, matrix.T if turned else matrix, columns_first(right), overwrite_b=1,
                     lower=upper if turned else not upper, trans_a=turned, diag=unitriangular),)
    return over_batch(one, (a, 2), (b, 2))[0]


def lstsq(a: np.ndarray, b: np.ndarray, rcond: float | None, driver: str) -> tuple[Any, ...]:
    """Least squares: solution, squared residuals, rank, singular values."""
    from scipy.linalg import lstsq as one_lstsq
    m, n = a.shape[-2:]
    real = a.real.dtype
    cond = rcond if rcond is not None else float(np.finfo(real).eps) * max(m, n)
    how = "gelsy" if driver == "gels" else driver
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    nothing = np.zeros(0, real)
    if not a.size or not b.size:
        k, whole = b.shape[-1], m > n and driver != "gelsy"
        return (np.zeros((*lead, n, k), b.dtype), np.zeros((*lead, k), real) if whole else nothing,
                np.zeros(0 if driver == "gels" else lead, np.int64),
                np.zeros((*lead, min(m, n)), real) if driver in ("gelsd", "gelss") else nothing)

    def one(matrix: np.ndarray, right: np.ndarray) -> Any:
        x, _, rank, values = one_lstsq(matrix, right, cond=cond, lapack_driver=how,
                                       check_finite=False)
        rest = right - matrix @ x
        sums = np.sum((rest * rest.conj()).real, 0)
        return (x.astype(right.dtype, copy=False), sums.astype(real, copy=False), np.int64(rank),
                np.zeros(0, real) if values is None else values.astype(real, copy=False))
    x, residuals, rank, values = over_batch(one, (a, 2), (b, 2))
    determined = m > n and (driver == "gels" or (rank == n).all())
    return (x, residuals if determined and driver != "gelsy" else nothing,
            np.zeros(0, np.int64) if driver == "gels" else rank,
            values if driver in ("gelsd", "gelss") else nothing)


# ---- orthogonal factors -------------------------------------------------------------------------


def qr(a: np.ndarray, mode: str) -> tuple[np.ndarray, np.ndarray]:
    if mode == "r":
        return np.zeros(0, a.dtype), columns(_numpy(np.linalg.qr, a, "r"))
    q, r = _numpy(np.linalg.qr, a, mode)
    return columns(q), columns(r)


def geqrf(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Householder's vectors below R, and their factors."""
    h, tau = _numpy(np.linalg.qr, a, "raw")
    return np.ascontiguousarray(h).swapaxes(-1, -2).astype(a.dtype, copy=False), \
        np.asarray(tau, a.dtype)


def svd(a: np.ndarray, full: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    try:
        u, s, vh = _numpy(np.linalg.svd, a, full)
    except np.linalg.LinAlgError:
        raise not_converged("linalg.svd", a) from None
    return columns(u), s, columns(vh)


def svdvals(a: np.ndarray) -> np.ndarray:
    try:
        return _numpy(np.linalg.svd, a, compute_uv=False)
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


def eigh(a: np.ndarray, uplo: str) -> tuple[np.ndarray, np.ndarray]:
    try:
        values, vectors = _numpy(np.linalg.eigh, a, uplo)
    except np.linalg.LinAlgError:
        raise not_converged("linalg.eigh", a, "eigenvalues") from None
    return values, columns(vectors)


def eigvalsh(a: np.ndarray, uplo: str) -> np.ndarray:
    try:
        return _numpy(np.linalg.eigvalsh, a, uplo)
    except np.linalg.LinAlgError:
        raise not_converged("linalg.eigh", a, "eigenvalues") from None


def eig(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if not np.isfinite(a).all():
        raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")
    wide = np.complex64 if a.dtype.itemsize == (8 if a.dtype.kind == "c" else 4) else np.complex128
    values, vectors = _numpy(np.linalg.eig, a)
    return values.astype(wide, copy=False), columns(vectors.astype(wide, copy=False))


def eigvals(a: np.ndarray) -> np.ndarray:
    if not np.isfinite(a).all():
        raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")
    wide = np.complex64 if a.dtype.itemsize == (8 if a.dtype.kind == "c" else 4) else np.complex128
    return _numpy(np.linalg.eigvals, a).astype(wide, copy=False)


# ---- functions of matrices ----------------------------------------------------------------------


def matrix_exp(a: np.ndarray) -> np.ndarray:
    if not a.size:
        return a.copy()
    from scipy.linalg import expm
    wide = a.astype(np.complex128 if a.dtype.kind == "c" else np.float64, copy=False)
    return np.ascontiguousarray(expm(wide).astype(a.dtype, copy=False))


# ---- reflections --------------------------------------------------------------------------------


def reflected(a: np.ndarray, tau: np.ndarray, x: np.ndarray, adjoint_of: bool) -> np.ndarray:
    """Q x, or Qᴴ x, where Q is the product of the reflections in the columns of `a` (`geqrf`)."""
    lead = np.broadcast_shapes(a.shape[:-2], tau.shape[:-1], x.shape[:-2])
    if not x.size or not tau.size:
        return np.broadcast_to(x, (*lead, *x.shape[-2:])).copy()
    k = tau.shape[-1]
    multiply = _lapack("unmqr" if a.dtype.kind == "c" else "ormqr", a, x)
    turn = "N" if not adjoint_of else "C" if a.dtype.kind == "c" else "T"
    size = max(1, x.shape[-1]) * 64

    def one(vectors: np.ndarray, factors: np.ndarray, right: np.ndarray) -> Any:
        own = np.array(vectors[:, :k], order="F")       # while it runs, LAPACK writes into it
        return (multiply("L", turn, own, factors, right, size)[0],)
    return over_batch(one, (a, 2), (tau, 1), (x, 2))[0]
