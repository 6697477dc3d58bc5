"""Matrix factorisations of arrays: NumPy's LAPACK, over leading dimensions.

Matrices are the last two dimensions. Results that LAPACK lays out by columns keep that layout, as
in torch. Failures are numbers in `info`, not exceptions, so that one bad matrix does not spoil a
batch.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from flambeau import kernels
from flambeau.kernels import views
from flambeau.kernels.blas import numpy_for
from flambeau.kernels.fortran import address, call_each, integers, library


class LinAlgError(RuntimeError):
    """A factorisation, solution or inverse that does not exist or did not converge."""


LinAlgError.__module__, LinAlgError.__name__ = "torch._C", "_LinAlgError"    # as torch shows it


def columns(a: np.ndarray) -> np.ndarray:
    """`a` with each matrix laid out column by column."""
    return np.ascontiguousarray(np.swapaxes(a, -1, -2)).swapaxes(-1, -2)


def _numpy(function: Callable[..., Any], a: np.ndarray, *rest: Any, **named: Any) -> Any:
    with numpy_for(a):
        return function(a, *rest, **named)


def _flat(a: np.ndarray, lead: tuple[int, ...] | None = None, copy: bool = True) -> np.ndarray:
    """The matrices as LAPACK has them: (items, columns, rows), each column by column; a copy,
    unless none is needed and asked for."""
    if lead is not None and a.shape[:-2] != lead:
        a = views.expand(a, lead + a.shape[-2:])
    m, n = a.shape[-2:]
    turned = a.swapaxes(-1, -2)
    if copy or not turned.flags.c_contiguous:
        turned = views.contiguous(turned)
    return turned.reshape(math.prod(a.shape[:-2]), n, m)


def _unflat(flat: np.ndarray, lead: tuple[int, ...]) -> np.ndarray:
    """`_flat` undone."""
    return flat.reshape(*lead, *flat.shape[1:]).swapaxes(-1, -2)


def _call(size: np.ndarray, name: str, *arguments: Any) -> None:
    """Call a routine of LAPACK for each item; matrices like `size`, which also says the type."""
    with numpy_for(size):
        call_each(name, size.dtype, *arguments)


_native = kernels._native


def _small(name: str, routines: tuple[str, ...], a: np.ndarray, *rest: Any) -> Any:
    """What C computes of small real matrices; None of others."""
    if _native is None or a.dtype.char not in "fd":
        return None
    return getattr(_native, f"small_{name}")(*_addresses(routines, a.dtype.char), a, *rest)


@cache
def _addresses(routines: tuple[str, ...], kind: str) -> tuple[Any, ...]:
    found = [address(name, np.dtype(kind)) for name in routines]
    return (*[at for at, _ in found], found[0][1])


def no_info(a: np.ndarray) -> np.ndarray:
    return np.zeros(a.shape[:-2], np.int32)


# ---- triangular factors -------------------------------------------------------------------------


def cholesky(a: np.ndarray, upper: bool) -> tuple[np.ndarray, np.ndarray]:
    """L with L Lᴴ = a (of which the lower triangle is read), or U with Uᴴ U = a (the upper), and
    where it failed."""
    found = _small("cholesky", ("potrf",), a, upper)
    if found is not None:
        return found
    if a.ndim > 2 or not a.size:
        try:
            found = columns(_numpy(np.linalg.cholesky, a, upper=upper))
            if not np.isnan(found.real.sum()):
                return found, no_info(a)
        except np.linalg.LinAlgError:
            pass
    flat, n, lead = _flat(a), a.shape[-1], a.shape[:-2]
    info, half = integers(len(flat)), b"U" if upper else b"L"
    _call(a, "potrf", half, n, flat, n, info)
    if n > 1:                               # LAPACK leaves what was in the other half
        other, zero = (flat[:, :, 1:], b"L") if upper else (flat[:, 1:], b"U")
        call_each("laset", a.dtype, zero, n - 1, n - 1, *_ZERO[a.dtype.char], other, n)
    _mark_nan_pivots(flat, info)
    return _unflat(flat, lead), info.reshape(lead).astype(np.int32)


def _mark_nan_pivots(factors: np.ndarray, info: np.ndarray) -> None:
    """Say that a factorisation failed at the first pivot that is not a number: a LAPACK that asks
    whether a pivot is below zero passes over those."""
    nan = np.isnan(np.diagonal(factors, axis1=-2, axis2=-1).real)
    failed = nan.any(-1) & (info == 0)
    info[failed] = nan[failed].argmax(-1) + 1


_ZERO = {kind: ((np.zeros(1, kind),), (np.zeros(1, kind),)) for kind in "fdFD"}
_ONE = {kind: (np.ones(1, kind),) for kind in "fdFD"}


def lu_factor(a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Both factors in one matrix, row exchanges counted from 1, and the first zero pivot."""
    found = _small("lu_factor", ("getrf",), a)
    if found is not None:
        return found
    (m, n), lead = a.shape[-2:], a.shape[:-2]
    if not a.size:
        return a.copy(), np.zeros((*lead, min(m, n)), np.int32), np.zeros(lead, np.int32)
    flat = _flat(a)
    pivots, info = integers(len(flat), min(m, n)), integers(len(flat))
    _call(a, "getrf", m, n, flat, m, pivots, info)
    return (_unflat(flat, lead), pivots.reshape(*lead, -1).astype(np.int32),
            info.reshape(lead).astype(np.int32))


def small_lu_solve(lu: np.ndarray, pivots: np.ndarray, b: np.ndarray, transposed: bool) -> Any:
    """x with a x = b, or aᵀ x = b, from the factors of a; None where `solve_triangular` has to."""
    return _small("lu_solve", ("getrs",), lu, pivots, b, transposed)


def small_lu_unpack(lu: np.ndarray, pivots: np.ndarray) -> Any:
    """P, L and U; None where they are to be computed otherwise."""
    return None if _native is None else _native.small_lu_unpack(lu, pivots)


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
    flat, n, lead = _flat(a), a.shape[-1], a.shape[:-2]
    pivots, info, work = integers(len(flat), n), integers(len(flat)), np.empty(64 * n, a.dtype)
    _call(a, name, b"L", n, flat, n, pivots, (work,), work.size, info)
    return (_unflat(np.triu(flat), lead), pivots.reshape(*lead, n).astype(np.int32),
            info.reshape(lead).astype(np.int32))


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
    lead = pivots.shape[:-1]
    items = [one(item) for item in pivots.reshape(math.prod(lead), n)]
    if not items:
        return tuple([np.empty((*lead, n, n), kind) for kind in (float, int, bool)])
    return tuple([np.stack(parts).reshape(*lead, n, n) for parts in zip(*items)])


def ldl_solve(ld: np.ndarray, pivots: np.ndarray, b: np.ndarray, hermitian: bool) -> np.ndarray:
    """A⁻¹ b from `ldl_factor`'s results. LAPACK does not check which rows it is to exchange."""
    name = "hetrs" if hermitian and ld.dtype.kind == "c" else "sytrs"
    lead = np.broadcast_shapes(ld.shape[:-2], b.shape[:-2])
    if not b.size or 0 in lead:
        return np.zeros((*lead, *b.shape[-2:]), b.dtype)
    if not ((pivots != 0) & (np.abs(pivots) <= ld.shape[-1])).all():
        raise RuntimeError("torch.linalg.ldl_solve: pivots are not those of a factorisation")
    n, k = b.shape[-2:]
    flat, right = _flat(ld, lead, copy=False), _flat(b, lead)
    if pivots.shape[:-1] != lead:
        pivots = views.expand(pivots, (*lead, n))
    places = pivots.astype(library().integer, order="C").reshape(len(flat), n)
    _call(ld, name, b"L", n, k, flat, n, places, right, n, integers(len(flat)))
    return _unflat(right, lead)


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


_FEW = 4


def solve_triangular(a: np.ndarray, b: np.ndarray, upper: bool, unitriangular: bool) -> np.ndarray:
    found = _small("solve_triangular", ("trsm",), a, b, upper, unitriangular)
    if found is not None:
        return found
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    if not b.size or not a.size:
        return np.zeros((*lead, *b.shape[-2:]), b.dtype)
    m, k = b.shape[-2:]
    right = _flat(b, lead)
    # BLAS reads columns: a matrix that has rows is its transpose, and so not copied
    turned = a.flags.c_contiguous
    left: Any = _flat(a.swapaxes(-1, -2) if turned else a, a.shape[:-2], copy=False)
    if a.shape[:-2] != lead:
        left = (left,) if len(left) == 1 else _flat(_unflat(left, a.shape[:-2]), lead, copy=False)
    half, way = b"U" if upper != turned else b"L", b"T" if turned else b"N"
    ones = b"U" if unitriangular else b"N"
    if k > _FEW:
        _call(a, "trsm", b"L", half, way, ones, m, k, _ONE[a.dtype.char], left, m, right, m)
    elif len(right) == 1:                   # vectors are faster one by one
        only = left if type(left) is tuple else (left,)
        _call(a, "trsv", half, way, ones, m, only, m, right[0], 1)
    else:
        with numpy_for(a):
            for j in range(k):
                call_each("trsv", a.dtype, half, way, ones, m, left, m, right[:, j], 1)
    return _unflat(right, lead)


def lstsq(a: np.ndarray, b: np.ndarray, rcond: float | None, driver: str) -> tuple[Any, ...]:
    """Least squares: solution, squared residuals, rank, singular values."""
    m, n = a.shape[-2:]
    real = a.real.dtype
    cond = rcond if rcond is not None else float(np.finfo(real).eps) * max(m, n)
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    nothing = np.zeros(0, real)
    if not a.size or not b.size:
        k, whole = b.shape[-1], m > n and driver != "gelsy"
        return (np.zeros((*lead, n, k), b.dtype), np.zeros((*lead, k), real) if whole else nothing,
                np.zeros(0 if driver == "gels" else lead, np.int64),
                np.zeros((*lead, min(m, n)), real) if driver in ("gelsd", "gelss") else nothing)
    x, rank, values = _lstsq(_flat(a, lead), _flat(b, lead), cond,
                             "gelsy" if driver == "gels" else driver)
    x = _unflat(np.ascontiguousarray(x), lead)
    rank = rank.reshape(lead).astype(np.int64)
    determined = m > n and (driver == "gels" or (rank == n).all())
    if determined and driver != "gelsy":
        rest = b - a @ x
        residuals = np.sum((rest * rest.conj()).real, -2).astype(real, copy=False)
    else:
        residuals = nothing
    return (x, residuals, np.zeros(0, np.int64) if driver == "gels" else rank,
            nothing if values is None else values.reshape(*lead, -1))


def _lstsq(a: np.ndarray, b: np.ndarray, cond: float, driver: str) -> tuple[Any, ...]:
    """The solutions, ranks and singular values (for `gelsy`, None), of flat matrices."""
    items, n, m = a.shape
    k, dtype, real = b.shape[1], a.dtype, a.real.dtype
    rank, info = integers(items), integers(items)
    tall = np.zeros((items, k, max(m, n)), dtype)       # LAPACK writes the solution over it
    tall[:, :, :m] = b
    pivoting = driver == "gelsy"
    found = integers(items, n) if pivoting else np.zeros((items, min(m, n)), real)
    limit = (np.full(1, cond, real),)

    def run(count: int, work: np.ndarray, length: int, rest: list[Any]) -> None:
        with numpy_for(a):
            call_each(driver, dtype, m, n, k, a[:count], m, tall[:count], tall.shape[-1],
                      found[:count], limit, rank[:count], (work,), length, *rest, info[:count])

    # how long they are to be, a call with the length -1 writes into the workspaces
    small = [np.zeros(1, dtype), np.zeros(1, real), integers(1)]
    kinds = [1] if dtype.kind == "c" else []
    if driver == "gelsd":
        kinds.append(2)
    run(1, small[0], -1, [(small[i],) for i in kinds])
    lengths = {1: {"gelsy": 2 * n, "gelss": 5 * min(m, n)}.get(driver, int(small[1][0])),
               2: int(small[2][0])}
    work = np.empty(int(small[0][0].real), dtype)
    rest = [np.empty(max(1, lengths[i]), small[i].dtype) for i in kinds]
    run(items, work, work.size, [(r,) for r in rest])
    if (info > 0).any():
        raise LinAlgError("torch.linalg.lstsq: SVD did not converge in Linear Least Squares")
    return tall[:, :, :n], rank, None if pivoting else found


# ---- orthogonal factors -------------------------------------------------------------------------


def qr(a: np.ndarray, mode: str) -> tuple[np.ndarray, np.ndarray]:
    if mode == "r":
        return np.zeros(0, a.dtype), columns(_numpy(np.linalg.qr, a, "r"))
    found = _small("qr", ("geqrf", "orgqr"), a, mode == "complete")
    if found is not None:
        return found
    q, r = _numpy(np.linalg.qr, a, mode)
    return columns(q), columns(r)


def geqrf(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Householder's vectors below R, and their factors."""
    h, tau = _numpy(np.linalg.qr, a, "raw")
    return np.ascontiguousarray(h).swapaxes(-1, -2).astype(a.dtype, copy=False), \
        np.asarray(tau, a.dtype)


def svd(a: np.ndarray, full: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    found = _small("svd", ("gesdd",), a, full)
    if found is not None:
        return found
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


# The numerators of Padé's approximants of exp, from the constant on, and up to which 1-norm
# each is exact (Higham, The scaling and squaring method for the matrix exponential revisited, 2005)
_PADE = [(limit, [math.factorial(2 * m - j) // (math.factorial(j) * math.factorial(m - j))
                  / (math.factorial(2 * m) / math.factorial(m)) for j in range(m + 1)])
         for m, limit in ((3, 1.495585217958292e-2), (5, 2.53939833006323e-1),
                          (7, 9.504178996162932e-1), (9, 2.097847961257068),
                          (13, 5.371920351148152))]


_native_exp = getattr(kernels._native, "matrix_exp", None)


def matrix_exp(a: np.ndarray) -> np.ndarray:
    """exp(A): exp(A / 2ˢ) by a quotient of polynomials in A / 2ˢ, squared s times."""
    if not a.size:
        return a.copy()
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    flat = a.astype(wide, order="C").reshape(-1, *a.shape[-2:])
    if _native_exp is not None:
        (gemm, is_wide), (gesv, _) = (address(name, flat.dtype) for name in ("gemm", "gesv"))
        with numpy_for(a), np.errstate(all="ignore"):
            _native_exp(gemm, gesv, is_wide, flat)
            return flat.reshape(a.shape).astype(a.dtype, copy=False)
    return _matrix_exp(flat).reshape(a.shape).astype(a.dtype, copy=False)


def _matrix_exp(flat: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"), numpy_for(flat):
        norms = np.abs(flat).sum(1).max(1)
        result = np.full_like(flat, np.nan)
        lowest = -1.0
        for limit, coefficients in _PADE:
            last = limit == _PADE[-1][0]
            chosen = (norms > lowest) & (norms < np.inf if last else norms <= limit)
            lowest = limit
            if chosen.all():
                result = _exp_of(flat, coefficients, norms / limit)
                break
            if chosen.any():
                result[chosen] = _exp_of(flat[chosen], coefficients, norms[chosen] / limit)
        return result


def _exp_of(x: np.ndarray, c: list[float], excess: np.ndarray) -> np.ndarray:
    times = np.maximum(np.ceil(np.log2(np.maximum(excess, 1))), 0).astype(np.int64)
    most = int(times.max())
    if most:
        x = np.ldexp(x.real, -times[:, None, None]) if x.dtype.kind == "f" else \
            x * 2.0 ** -times[:, None, None]
    square, eye = x @ x, np.eye(x.shape[-1])
    powers = [square]
    for _ in range(len(c) // 2 - 2):
        powers.append(powers[-1] @ square)
    even = c[0] * eye + sum(k * p for k, p in zip(c[2::2], powers))
    odd = x @ (c[1] * eye + sum(k * p for k, p in zip(c[3::2], powers)))
    result = np.linalg.solve(even - odd, even + odd)
    for i in range(most):
        if times.min() > i:
            result = result @ result
        else:
            again = times > i
            result[again] = result[again] @ result[again]
    return result


# ---- reflections --------------------------------------------------------------------------------


_BLOCKED = 32       # for fewer columns LAPACK is faster without blocks, which need more room


def reflected(a: np.ndarray, tau: np.ndarray, x: np.ndarray, adjoint_of: bool) -> np.ndarray:
    """Q x, or Qᴴ x, where Q is the product of the reflections in the columns of `a` (`geqrf`)."""
    lead = np.broadcast_shapes(a.shape[:-2], tau.shape[:-1], x.shape[:-2])
    if not x.size or not tau.size:
        return np.broadcast_to(x, (*lead, *x.shape[-2:])).copy()
    k = tau.shape[-1]
    name = "unmqr" if a.dtype.kind == "c" else "ormqr"
    turn = b"N" if not adjoint_of else b"C" if a.dtype.kind == "c" else b"T"
    (m, p), right = x.shape[-2:], _flat(x, lead)
    vectors = _flat(a[..., :k], lead)               # while it runs, LAPACK writes into it
    factors = np.ascontiguousarray(views.expand(tau, (*lead, k)).reshape(len(right), k))
    work = np.empty(p * 64 + (65 * 64 if p >= _BLOCKED else 0), a.dtype)
    _call(a, name, b"L", turn, m, p, k, vectors, m, factors, right, m, (work,), work.size,
          integers(len(right)))
    return _unflat(right, lead)
