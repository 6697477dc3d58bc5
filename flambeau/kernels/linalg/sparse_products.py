"""Products of sparse matrices, whose elements are at places (2, n), in any order.

By a dense matrix the extension multiplies. The rest is done by SciPy where it is installed, since
its loops are compiled, and else by NumPy.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from flambeau import kernels
from flambeau.kernels.moving.indexing import combiner

_AT_ONCE = 1 << 22      # elements of an intermediate result


_native = getattr(kernels._native, "sparse_multiply", None)
_reduce = getattr(kernels._native, "sparse_reduce", None)
_rows_multiply = getattr(kernels._native, "sparse_rows_multiply", None)
_sampled = getattr(kernels._native, "sparse_sampled", None)


@functools.cache
def _scipy_sparse() -> Any:
    try:
        import scipy.sparse
    except ImportError:
        return None
    return scipy.sparse


def _as_scipy_dtype(array: np.ndarray) -> np.ndarray:
    """In a type that SciPy has loops for."""
    kind = array.dtype
    return array if kind.kind in "biufc" and kind != np.float16 else array.astype(np.float32)


def _matrix(scipy_sparse: Any, places: np.ndarray, data: np.ndarray, shape: Any) -> Any:
    return scipy_sparse.coo_array((data, (places[0], places[1])), shape=shape).tocsr()


def _by_rows(places: np.ndarray, data: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows, columns = places
    if (rows[1:] < rows[:-1]).any():
        order = np.argsort(rows, kind="stable")
        return rows[order], columns[order], data[order]
    return rows, columns, data


def _starts(rows: np.ndarray) -> np.ndarray:
    """Where each run of equal numbers begins."""
    return np.flatnonzero(np.append(True, rows[1:] != rows[:-1])) if rows.size else rows[:0]


def multiply(places: np.ndarray, data: np.ndarray, shape: Any, dense: np.ndarray) -> np.ndarray:
    """The product of a sparse matrix and a dense matrix or vector."""
    data, dense = _as_scipy_dtype(data), _as_scipy_dtype(dense)
    if _native is not None and data.dtype == dense.dtype and data.dtype.char in "fdFDl":
        wide = np.ascontiguousarray(dense[:, None] if dense.ndim == 1 else dense)
        result = np.zeros((shape[0], wide.shape[1]), dense.dtype)
        rows, columns = (np.ascontiguousarray(x, np.int64) for x in places)
        _native(rows, columns, np.ascontiguousarray(data), wide, result)
        return result[:, 0] if dense.ndim == 1 else result
    found = _scipy_sparse()
    if found is not None:
        return _matrix(found, places, data, shape) @ dense
    return _multiply(places, data, shape, dense)


def _multiply(places: np.ndarray, data: np.ndarray, shape: Any, dense: np.ndarray) -> np.ndarray:
    rows, columns, data = _by_rows(places, data)
    starts = _starts(rows)
    wide = dense[:, None] if dense.ndim == 1 else dense
    result = np.zeros((shape[0], wide.shape[1]), np.result_type(data, dense))
    if starts.size:
        step = max(1, _AT_ONCE // len(data))
        for first in range(0, wide.shape[1], step):
            terms = data[:, None] * wide[columns, first:first + step]
            result[rows[starts], first:first + step] = np.add.reduceat(terms, starts, 0)
    return result[:, 0] if dense.ndim == 1 else result


def in_order(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether `multiply_sparse` gives the elements row by row, each place once, zeros too."""
    return _rows_multiply is not None and a.dtype == b.dtype and a.dtype.char in "fdFDl"


def multiply_sparse(a_places: np.ndarray, a: np.ndarray, a_shape: Any, b_places: np.ndarray,
                    b: np.ndarray, b_shape: Any) -> tuple[np.ndarray, np.ndarray]:
    """The product of two sparse matrices: places and elements."""
    a, b = _as_scipy_dtype(a), _as_scipy_dtype(b)
    if in_order(a, b):
        assert _rows_multiply is not None
        starts, columns, data = _rows_multiply(*_to_csr(a_places, a, a_shape[0]),
                                               *_to_csr(b_places, b, b_shape[0]), b_shape[1])
        return np.stack([np.repeat(np.arange(a_shape[0]), np.diff(starts)), columns]), data
    found = _scipy_sparse()
    if found is None:
        return _multiply_sparse(a_places, a, b_places, b, b_shape)
    r = (_matrix(found, a_places, a, a_shape) @ _matrix(found, b_places, b, b_shape)).tocoo()
    return np.stack([r.row, r.col]).astype(np.int64), r.data


def _to_csr(places: np.ndarray, data: np.ndarray, count: int) -> tuple[np.ndarray, ...]:
    """Where each row begins, columns and elements."""
    rows, columns, data = _by_rows(places, data)
    starts = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=count), out=starts[1:])
    return starts, np.ascontiguousarray(columns, np.int64), np.ascontiguousarray(data)


def _multiply_sparse(a_places: np.ndarray, a: np.ndarray, b_places: np.ndarray, b: np.ndarray,
                     b_shape: Any) -> tuple[np.ndarray, np.ndarray]:
    b_rows, b_columns, b = _by_rows(b_places, b)
    firsts = np.searchsorted(b_rows, np.arange(b_shape[0] + 1))
    counts = np.diff(firsts)[a_places[1]]       # with how many elements each of `a` is multiplied
    which = np.repeat(np.arange(len(a)), counts)
    ends = np.cumsum(counts)
    partner = np.arange(len(which)) - np.repeat(ends - counts - firsts[a_places[1]], counts)
    flat = a_places[0][which] * b_shape[1] + b_columns[partner]
    order = np.argsort(flat, kind="stable")
    flat, terms = flat[order], (a[which] * b[partner])[order]
    starts = _starts(flat)
    data = np.add.reduceat(terms, starts) if starts.size else terms
    return np.stack(np.divmod(flat[starts], b_shape[1])).astype(np.int64), data


def solve(places: np.ndarray, data: np.ndarray, shape: Any, b: np.ndarray) -> np.ndarray:
    """x with A x = b, by sparse factors. ImportError without SciPy, which has them."""
    found = _scipy_sparse()
    if found is None:
        raise ImportError("torch.sparse.spsolve needs SciPy: pip install 'flambeau[scipy]'",
                          name="scipy")
    from scipy.sparse.linalg import spsolve
    return spsolve(_matrix(found, places, _as_scipy_dtype(data), shape).tocsc(), b)


def reduced(starts: np.ndarray, columns: np.ndarray, data: np.ndarray, dense: np.ndarray,
            reduce: str) -> np.ndarray:
    """The sum, mean, amax or amin, over the elements of a row of a compressed matrix, of element
    times row of `dense`; zero for empty rows."""
    if _reduce is not None and data.dtype == dense.dtype and data.dtype.char in "fd":
        result = np.empty((len(starts) - 1, dense.shape[1]), dense.dtype)
        _reduce(np.ascontiguousarray(starts, np.int64), np.ascontiguousarray(columns, np.int64),
                np.ascontiguousarray(data), np.ascontiguousarray(dense), result, reduce)
        return result
    counts = starts[1:] - starts[:-1]
    result = np.zeros((len(counts), dense.shape[1]), dense.dtype)
    if columns.size:
        filled = counts > 0
        terms = data[:, None] * dense[columns]
        found = combiner(reduce, terms.dtype).reduceat(terms, starts[:-1][filled], 0)
        result[filled] = found / counts[filled, None] if reduce == "mean" else found
    return result


def sampled(starts: np.ndarray, columns: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The elements of a @ b at the places of a compressed matrix."""
    if _sampled is not None and a.dtype == b.dtype and a.dtype.char in "fd":
        result = np.empty(len(columns), a.dtype)
        _sampled(np.ascontiguousarray(starts, np.int64), np.ascontiguousarray(columns, np.int64),
                 np.ascontiguousarray(a), np.ascontiguousarray(b.T), result)
        return result
    rows = np.repeat(np.arange(len(starts) - 1), starts[1:] - starts[:-1])
    return np.einsum("ij,ji->i", a[rows], b[:, columns])
