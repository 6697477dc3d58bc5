"""Factors of square matrices, and equations: NumPy's LAPACK, over leading dimensions.

Matrices are the last two dimensions. Results that LAPACK lays out by columns keep that layout, as
in torch. Failures are numbers in `info`, so that one bad matrix does not spoil a batch; with
`check_errors` they are exceptions. The compiled kernels are for small matrices of real numbers.
Arguments that do not fit raise `Misfit`: the declaration of the op says what is wrong.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau.kernels._extension import Misfit
from flambeau.kernels.linalg.blas import numpy_for
from flambeau.kernels.linalg.empty_matrices import columns as columns
from flambeau.kernels.linalg.empty_matrices import compiled
from flambeau.kernels.linalg.fortran import call_each, integers, library
from flambeau.kernels.moving import views


class LinAlgError(RuntimeError):
    """A factorisation, solution or inverse that does not exist or did not converge."""


LinAlgError.__module__ = "torch._C"             # as PyTorch shows it
LinAlgError.__name__ = LinAlgError.__qualname__ = "_LinAlgError"


def matrices(*several: np.ndarray, square: bool = False) -> None:
    """Raise Misfit unless LAPACK can take the arrays, of one type, as matrices."""
    first = several[0]
    for a in several:
        if a.ndim < 2 or a.dtype != first.dtype or a.dtype.char not in "fdFD":
            raise Misfit
    if square and first.shape[-1] != first.shape[-2]:
        raise Misfit


def fits(answer: bool) -> None:
    """Raise Misfit unless the arguments fit."""
    if not answer:
        raise Misfit


def raise_failure(info: np.ndarray, name: str, message: str, error: Any = None) -> None:
    """Raise for the first nonzero `info`; `{}` in the message is its value."""
    if not np.count_nonzero(info):
        return
    flat = info.reshape(-1)
    first = int(np.flatnonzero(flat)[0])
    where = f"(Batch element {first}): " if info.ndim else ""
    raise (error or LinAlgError)(f"{name}: {where}{message.format(int(flat[first]))}")


def run_numpy(function: Callable[..., Any], a: np.ndarray, *rest: Any, **named: Any) -> Any:
    with numpy_for(a):
        return function(a, *rest, **named)


def flattened(a: np.ndarray, lead: tuple[int, ...] | None = None, copy: bool = True) -> np.ndarray:
    """The matrices as LAPACK has them: (items, columns, rows), each column by column; a copy,
    unless none is needed and asked for."""
    if lead is not None and a.shape[:-2] != lead:
        a = views.expand(a, lead + a.shape[-2:])
    m, n = a.shape[-2:]
    turned = a.swapaxes(-1, -2)
    if copy or not turned.flags.c_contiguous:
        turned = views.contiguous(turned)
    return turned.reshape(math.prod(a.shape[:-2]), n, m)


def unflattened(flat: np.ndarray, lead: tuple[int, ...]) -> np.ndarray:
    """`flattened` undone."""
    found = flat.reshape(*lead, *flat.shape[1:]).swapaxes(-1, -2)
    return found if found.size and 1 not in found.shape else columns(found)


def call(size: np.ndarray, name: str, *arguments: Any) -> None:
    """Call a routine of LAPACK for each item; matrices like `size`, which also says the type."""
    with numpy_for(size):
        call_each(name, size.dtype, *arguments)


def zero_info(a: np.ndarray) -> np.ndarray:
    return np.zeros(a.shape[:-2], np.int32)


NOT_POSITIVE = ("The factorization could not be completed because the input is not "
                "positive-definite (the leading minor of order {} is not positive-definite).")
ZERO_PIVOT = ("U[{0},{0}] is zero and using it on lu_solve would result in a division by zero. If "
              "you still want to perform the factorization, consider calling linalg.lu(A, pivot) "
              "or linalg.lu_factor_ex(A, pivot)")
SINGULAR_D = ("The diagonal element {} is zero, and using it to solve a system would result in a "
              "division by zero.")
SINGULAR = "The solver failed because the input matrix is singular."
NO_INVERSE = ("The diagonal element {} is zero, the inversion could not be completed because the "
              "input matrix is singular.")

# ---- Cholesky -----------------------------------------------------------------------------------


@compiled("cholesky_ex", empty="eW8")
def cholesky_ex(a: np.ndarray, upper: bool, check_errors: bool) -> tuple[np.ndarray, np.ndarray]:
    """L with L Lᴴ = a (of which the lower triangle is read), or U with Uᴴ U = a (the upper), and
    where it failed."""
    matrices(a, square=True)
    factor, info = _cholesky(a, upper)
    if check_errors:
        raise_failure(info, "linalg.cholesky_ex", NOT_POSITIVE)
    return factor, info


def _cholesky(a: np.ndarray, upper: bool) -> tuple[np.ndarray, np.ndarray]:
    if a.ndim > 2 or not a.size:
        try:
            found = columns(run_numpy(np.linalg.cholesky, a, upper=upper))
            if not np.isnan(found.real.sum()):
                return found, zero_info(a)
        except np.linalg.LinAlgError:
            pass
    flat, n, lead = flattened(a), a.shape[-1], a.shape[:-2]
    info, half = integers(len(flat)), b"U" if upper else b"L"
    call(a, "potrf", half, n, flat, n, info)
    if n > 1:                               # LAPACK leaves what was in the other half
        other, zero = (flat[:, :, 1:], b"L") if upper else (flat[:, 1:], b"U")
        call_each("laset", a.dtype, zero, n - 1, n - 1, *_ZERO[a.dtype.char], other, n)
    _mark_nan_pivots(flat, info)
    return unflattened(flat, lead), info.reshape(lead).astype(np.int32)


def _mark_nan_pivots(factors: np.ndarray, info: np.ndarray) -> None:
    """Say that a factorisation failed at the first pivot that is not a number: a LAPACK that asks
    whether a pivot is below zero passes over those."""
    nan = np.isnan(np.diagonal(factors, axis1=-2, axis2=-1).real)
    failed = nan.any(-1) & (info == 0)
    info[failed] = nan[failed].argmax(-1) + 1


_ZERO = {kind: ((np.zeros(1, kind),), (np.zeros(1, kind),)) for kind in "fdFD"}
_ONE = {kind: (np.ones(1, kind),) for kind in "fdFD"}


@compiled("cholesky_solve")
def cholesky_solve(b: np.ndarray, factor: np.ndarray, upper: bool) -> np.ndarray:
    """x with a x = b, from the Cholesky factor of a."""
    matrices(factor, b, square=True)
    fits(factor.shape[-1] == b.shape[-2])
    n, k = b.shape[-2:]
    lead = joined(factor, b)
    right = flattened(b, lead)
    if right.size:
        call(factor, "potrs", b"U" if upper else b"L", n, k, flattened(factor, lead, copy=False), n,
              right, n, integers(len(right)))
    return unflattened(right, lead)


@compiled("cholesky_inverse")
def cholesky_inverse(factor: np.ndarray, upper: bool) -> np.ndarray:
    """The inverse of a, from its Cholesky factor."""
    matrices(factor, square=True)
    n, flat, lead = factor.shape[-1], flattened(factor), factor.shape[:-2]
    info = integers(len(flat))
    if flat.size:
        call(factor, "potri", b"U" if upper else b"L", n, flat, n, info)
        raise_failure(info.reshape(lead), "cholesky_inverse",
                      "The diagonal element {} is zero, the inversion could not be completed "
                      "because the input matrix is singular.")
    # the flat matrices are transposed: what LAPACK has written is on the other side
    part, mirror = (np.tril(flat), np.tril(flat, -1)) if upper else (np.triu(flat),
                                                                    np.triu(flat, 1))
    return unflattened(part + mirror.conj().swapaxes(-1, -2), lead)


def joined(a: np.ndarray, b: np.ndarray) -> tuple[int, ...]:
    """The leading dimensions of both; Misfit if they do not broadcast."""
    try:
        return np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise Misfit from None


# ---- LU -----------------------------------------------------------------------------------------


@compiled("lu_factor_ex", empty="bBilUeW8")
def lu_factor_ex(a: np.ndarray, pivot: bool, check_errors: bool) -> tuple[np.ndarray, ...]:
    """Both factors in one matrix, row exchanges counted from 1, and the first zero pivot."""
    matrices(a)
    fits(pivot or not a.size)
    found = _lu_factor(a)
    if check_errors:
        raise_failure(found[2], "torch.linalg.lu_factor_ex", ZERO_PIVOT, RuntimeError)
    return found


def _lu_factor(a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    (m, n), lead = a.shape[-2:], a.shape[:-2]
    if not a.size:
        return columns(a.copy()), np.zeros((*lead, min(m, n)), np.int32), np.zeros(lead, np.int32)
    flat = flattened(a)
    pivots, info = integers(len(flat), min(m, n)), integers(len(flat))
    call(a, "getrf", m, n, flat, m, pivots, info)
    return (unflattened(flat, lead), pivots.reshape(*lead, -1).astype(np.int32),
            info.reshape(lead).astype(np.int32))


@compiled("lu_solve", empty="eW8")
def lu_solve(lu: np.ndarray, pivots: np.ndarray, b: np.ndarray, left: bool, adjoint: bool
             ) -> np.ndarray:
    """x with a x = b (or x a = b, or with aᴴ) from what `lu_factor_ex` gives for a."""
    matrices(lu, b, square=True)
    n = lu.shape[-1]
    fits(pivots.dtype == np.int32 and pivots.shape == lu.shape[:-1]
         and b.shape[-2 if left else -1] == n)
    if not left:                            # x a = b is aᴴ xᴴ = bᴴ
        found = lu_solve(lu, pivots, b.conj().swapaxes(-1, -2), True, not adjoint)
        return found.conj().swapaxes(-1, -2)
    lead = joined(lu, b)
    right = flattened(b, lead)
    if not right.size:
        return unflattened(right, lead)
    if not ((pivots >= 1) & (pivots <= n)).all():
        raise RuntimeError("Pivots given to lu_solve must all be greater or equal to 1. Did you "
                           "properly pass the result of lu_factor?")
    places = views.expand(pivots, (*lead, n)).astype(library().integer, order="C")
    way = b"N" if not adjoint else b"C" if lu.dtype.kind == "c" else b"T"
    call(lu, "getrs", way, n, b.shape[-1], flattened(lu, lead, copy=False), n,
          places.reshape(len(right), n), right, n, integers(len(right)))
    return unflattened(right, lead)


@compiled("lu_unpack")
def lu_unpack(lu: np.ndarray, pivots: np.ndarray, unpack_data: bool, unpack_pivots: bool
              ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """P, L and U; what is not asked for is empty."""
    fits(lu.ndim > 1 and (not unpack_pivots or pivots.dtype == np.int32))
    (m, n), nothing = lu.shape[-2:], np.empty(0, lu.dtype)
    k = min(m, n)
    fits(not unpack_pivots or bool((pivots <= m).all()))
    P = permutation_matrix(pivots, m, lu.dtype) if unpack_pivots else nothing
    if not unpack_data:
        return P, nothing, np.empty(0, lu.dtype)
    low = np.tril(lu[..., :k], -1) + np.eye(m, k, dtype=lu.dtype)
    return P, low, np.ascontiguousarray(np.triu(lu[..., :k, :]))


@compiled("lu")
def lu(a: np.ndarray, pivot: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """a = P L U."""
    factors, pivots, _ = lu_factor_ex(a, pivot, False)
    p, lower, upper = lu_unpack(factors, pivots, True, True)
    return p if pivot else np.zeros(0, a.dtype), lower, upper


def permutation_of(pivots: np.ndarray, m: int) -> np.ndarray:
    """The rows' places after the exchanges: row i of P a ... is row `places[i]` of a."""
    k = pivots.shape[-1]
    lead = pivots.shape[:-1]
    places = np.broadcast_to(np.arange(m), (*lead, m)).copy().reshape(int(np.prod(lead)), m)
    if len(places) < 8:             # an exchange of two numbers costs NumPy as much as of many
        for row, targets in zip(places, pivots.reshape(len(places), k)):
            order = row.tolist()
            for i, target in enumerate(targets.tolist()):
                order[i], order[target - 1] = order[target - 1], order[i]
            row[:] = order
        return places.reshape(*lead, m)
    rows = np.arange(len(places))
    for i, target in enumerate(pivots.reshape(len(places), k).T.astype(np.int64) - 1):
        places[rows, i], places[rows, target] = places[rows, target], places[rows, i].copy()
    return places.reshape(*lead, m)


def permutation_matrix(pivots: np.ndarray, m: int, dtype: Any) -> np.ndarray:
    """P with a = P L U."""
    places = permutation_of(pivots, m)
    return (np.arange(m)[:, None] == places[..., None, :]).astype(dtype)


# ---- determinants -------------------------------------------------------------------------------


@compiled("det", empty="eW8")
def det(a: np.ndarray) -> np.ndarray:
    matrices(a, square=True)
    return np.asarray(run_numpy(np.linalg.det, a), a.dtype)


@compiled("slogdet")
def slogdet(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The sign, or phase, of the determinant, and the logarithm of its size."""
    matrices(a, square=True)
    sign, size = run_numpy(np.linalg.slogdet, a)
    return np.asarray(sign, a.dtype), np.asarray(size, a.real.dtype)


# ---- symmetric matrices -------------------------------------------------------------------------


@compiled("ldl_factor_ex", empty="eW8")
def ldl_factor_ex(a: np.ndarray, hermitian: bool, check_errors: bool) -> tuple[np.ndarray, ...]:
    """Bunch and Kaufman's factors of a symmetric matrix, read from its lower triangle."""
    matrices(a, square=True)
    found = _ldl_factor(a, hermitian)
    if check_errors:
        raise_failure(found[2], "torch.linalg.ldl_factor_ex", SINGULAR_D)
    return found


def _ldl_factor(a: np.ndarray, hermitian: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if not a.size:
        return columns(a), np.zeros(a.shape[:-1], np.int32), zero_info(a)
    name = "hetrf" if hermitian and a.dtype.kind == "c" else "sytrf"
    flat, n, lead = flattened(a), a.shape[-1], a.shape[:-2]
    pivots, info, work = integers(len(flat), n), integers(len(flat)), np.empty(64 * n, a.dtype)
    call(a, name, b"L", n, flat, n, pivots, (work,), work.size, info)
    return (unflattened(np.triu(flat), lead), pivots.reshape(*lead, n).astype(np.int32),
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
        swaps, rows, pairs = (np.empty((*lead, n, n), kind) for kind in (float, int, bool))
    else:
        swaps, rows, pairs = (np.stack(parts).reshape(*lead, n, n) for parts in zip(*items))
    return swaps, rows, pairs


@compiled("ldl_solve", empty="eW8")
def ldl_solve(ld: np.ndarray, pivots: np.ndarray, b: np.ndarray, hermitian: bool) -> np.ndarray:
    """A⁻¹ b from `ldl_factor`'s results. LAPACK does not check which rows it is to exchange."""
    matrices(ld, b, square=True)
    fits(pivots.shape == ld.shape[:-1] and pivots.dtype.kind in "iu"
         and ld.shape[-1] == b.shape[-2])
    name = "hetrs" if hermitian and ld.dtype.kind == "c" else "sytrs"
    lead = joined(ld, b)
    if not b.size or 0 in lead:
        return columns(np.zeros((*lead, *b.shape[-2:]), b.dtype))
    if not ((pivots != 0) & (np.abs(pivots) <= ld.shape[-1])).all():
        raise RuntimeError("torch.linalg.ldl_solve: pivots are not those of a factorisation")
    n, k = b.shape[-2:]
    flat, right = flattened(ld, lead, copy=False), flattened(b, lead)
    if pivots.shape[:-1] != lead:
        pivots = views.expand(pivots, (*lead, n))
    places = pivots.astype(library().integer, order="C").reshape(len(flat), n)
    call(ld, name, b"L", n, k, flat, n, places, right, n, integers(len(flat)))
    return unflattened(right, lead)


# ---- linear equations ---------------------------------------------------------------------------


@compiled("solve_ex", empty="eW8")
def solve_ex(a: np.ndarray, b: np.ndarray, left: bool, check_errors: bool
             ) -> tuple[np.ndarray, np.ndarray]:
    """x with a x = b (or x a = b), for matrices or vectors b, and for each matrix its first zero
    pivot (0: none)."""
    vector = b.ndim == 1 or (a.ndim - 1 == b.ndim and b.shape == a.shape[:-1])
    if vector:
        b = b[..., None]
    matrices(a, b, square=True)
    fits(a.shape[-1] == b.shape[-2 if left else -1] and (left or not vector))
    joined(a, b)
    if left:
        x, info = _solve(a, b)
    else:
        x, info = _solve(a.swapaxes(-1, -2), b.swapaxes(-1, -2))
        x = x.swapaxes(-1, -2)
    if check_errors:
        raise_failure(info, "torch.linalg.solve_ex", SINGULAR)
    if vector:                  # in torch the vectors are laid out as if they were columns
        x = columns(x[..., 0]) if x.ndim > 2 else x[..., 0]
    return x, info


_LARGE = 64         # from here on NumPy's solutions in float64 cost more than their calls save


def _in_single(a: np.ndarray) -> bool:
    return a.dtype == np.float32 and a.shape[-1] >= _LARGE


def _solve(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if _in_single(a) and a.shape[:-2] == b.shape[:-2]:
        lu, pivots, info = _lu_factor(a)
        if not info.any():
            return columns(lu_solve(lu, pivots, b, True, False)), info
    try:
        return columns(run_numpy(np.linalg.solve, a, b)), zero_info(a)
    except np.linalg.LinAlgError:
        info = _lu_factor(a)[2]
        bad = (info != 0)[..., None, None]
        found = run_numpy(np.linalg.solve, np.where(bad, np.eye(a.shape[-1], dtype=a.dtype), a), b)
        return columns(np.where(bad, a.dtype.type(np.nan), found)), info


@compiled("inv_ex")
def inv_ex(a: np.ndarray, check_errors: bool) -> tuple[np.ndarray, np.ndarray]:
    """The inverse, and for each matrix its first zero pivot."""
    matrices(a, square=True)
    found, info = _inv(a)
    if check_errors:
        raise_failure(info, "linalg.inv_ex", NO_INVERSE)
    return found, info


def _inv(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    try:
        return columns(run_numpy(np.linalg.inv, a)), zero_info(a)
    except np.linalg.LinAlgError:
        info = _lu_factor(a)[2]
        bad = (info != 0)[..., None, None]
        found = np.linalg.inv(np.where(bad, np.eye(a.shape[-1], dtype=a.dtype), a))
        return columns(np.where(bad, a.dtype.type(np.nan), found)), info


_FEW = 4


@compiled("solve_triangular")
def solve_triangular(a: np.ndarray, b: np.ndarray, upper: bool, left: bool, unitriangular: bool
                     ) -> np.ndarray:
    """x with a x = b (or x a = b), where a is triangular."""
    matrices(a, b, square=True)
    fits(a.shape[-1] == b.shape[-2 if left else -1])
    joined(a, b)
    if left:
        return _solve_triangular(a, b, upper, unitriangular)
    return columns(_solve_triangular(a.swapaxes(-1, -2), b.swapaxes(-1, -2), not upper,
                                     unitriangular).swapaxes(-1, -2))


@compiled("triangular_solve")
def triangular_solve(b: np.ndarray, a: np.ndarray, upper: bool, transpose: bool,
                     unitriangular: bool) -> tuple[np.ndarray, np.ndarray]:
    """x with a x = b, or with the transpose of a; and a copy of a."""
    matrices(a, b, square=True)
    fits(a.shape[-1] == b.shape[-2])
    whole = np.broadcast_to(a, (*joined(a, b), *a.shape[-2:]))
    left, high = (a.swapaxes(-1, -2), not upper) if transpose else (a, upper)
    return _solve_triangular(left, b, high, unitriangular), columns(whole.copy())


def _solve_triangular(a: np.ndarray, b: np.ndarray, upper: bool, unitriangular: bool) -> np.ndarray:
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    if not b.size or not a.size:
        return columns(np.zeros((*lead, *b.shape[-2:]), b.dtype))
    m, k = b.shape[-2:]
    right = flattened(b, lead)
    # BLAS reads columns: a matrix that has rows is its transpose, and so not copied
    turned = a.flags.c_contiguous
    left: Any = flattened(a.swapaxes(-1, -2) if turned else a, a.shape[:-2], copy=False)
    if a.shape[:-2] != lead:
        left = (left,) if len(left) == 1 else flattened(
            unflattened(left, a.shape[:-2]), lead, copy=False)
    half, way = b"U" if upper != turned else b"L", b"T" if turned else b"N"
    ones = b"U" if unitriangular else b"N"
    if k > _FEW:
        call(a, "trsm", b"L", half, way, ones, m, k, _ONE[a.dtype.char], left, m, right, m)
    elif len(right) == 1:                   # vectors are faster one by one
        only = left if type(left) is tuple else (left,)
        call(a, "trsv", half, way, ones, m, only, m, right[0], 1)
    else:
        with numpy_for(a):
            for j in range(k):
                call_each("trsv", a.dtype, half, way, ones, m, left, m, right[:, j], 1)
    return unflattened(right, lead)
