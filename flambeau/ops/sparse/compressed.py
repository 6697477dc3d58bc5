"""Sparse forms as arrays: coordinates, compressed rows and columns, and what must hold for them.

Coordinates are an integer array (sparse dimensions, entries) with values (entries, *dense).
Compressed forms keep, for each batch, where the entries of a row (or column) begin, and each
entry's column (or row); the entries of bsr and bsc are blocks.
"""
from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from flambeau.core import type_info
from flambeau.core.dtypes import from_numpy_dtype
from flambeau.core.promotion import type_name
from flambeau.kernels.moving.indexing import add_in_turn_

COO, CSR, CSC = type_info.sparse_coo, type_info.sparse_csr, type_info.sparse_csc
BSR, BSC = type_info.sparse_bsr, type_info.sparse_bsc
BY_ROW, BLOCKED, COMPRESSED = (CSR, BSR), (BSR, BSC), (CSR, CSC, BSR, BSC)
TITLES = {type_info.strided: "Strided", COO: "Sparse", CSR: "SparseCsr", CSC: "SparseCsc",
          BSR: "SparseBsr", BSC: "SparseBsc"}


def flat_index(indices: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The position of each column of `indices` in a row-major array of that shape."""
    flat = np.zeros(indices.shape[1], np.int64)
    for row, n in zip(indices, shape):
        flat *= n
        flat += row
    return flat


def coalesced(indices: np.ndarray, data: np.ndarray,
              shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The entries in row-major order, those of one place added up."""
    if indices.shape[1] < 2:
        return indices, data
    flat = flat_index(indices, shape)
    order = np.argsort(flat, kind="stable")
    flat = flat[order]
    first = np.concatenate(([True], flat[1:] != flat[:-1]))
    starts, again = np.flatnonzero(first), np.flatnonzero(~first)
    sums = data[order[starts]]
    if again.size and sums.size:
        add_in_turn_(sums, 0, np.cumsum(first)[again] - 1, data[order[again]])
    return indices[:, order[starts]], sums


def merged(x: np.ndarray, a: np.ndarray, y: np.ndarray, b: np.ndarray,
           shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The sum of entries `a` at places x and `b` at y: of the two next ones, that comes which is
    first in row-major order, and both together where they are of one place."""
    if x.shape == y.shape and np.array_equal(x, y):
        return x, a + b
    i, j = flat_index(x, shape), flat_index(y, shape)
    if (i[1:] > i[:-1]).all() and (j[1:] > j[:-1]).all():
        return coalesced(np.concatenate([x, y], 1), np.concatenate([a, b]), shape)
    first, second = _merged_places(i.tolist(), j.tolist())
    count = max(first[-1], second[-1]) + 1
    places = np.empty((len(x), count), x.dtype)
    places[:, second], places[:, first] = y, x
    data = np.zeros((count, *a.shape[1:]), a.dtype)
    data[first] = a
    data[second] += b
    return places, data


def _merged_places(x: list[int], y: list[int]) -> tuple[list[int], list[int]]:
    """Where the entries of each stand in the sum, which `merged` tells the order of."""
    first: list[int] = []
    second: list[int] = []
    count = 0
    while len(first) < len(x) and len(second) < len(y):
        p, q = x[len(first)], y[len(second)]
        if p <= q:
            first.append(count)
        if q <= p:
            second.append(count)
        count += 1
    first += range(count, count + len(x) - len(first))
    second += range(count, count + len(y) - len(second))
    return first, second


def is_coalesced(indices: np.ndarray, shape: tuple[int, ...]) -> bool:
    flat = flat_index(indices, shape)
    return bool((flat[1:] > flat[:-1]).all())


def found_at(indices: np.ndarray, wanted: np.ndarray,
             shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """For each column of `wanted`, which of the (coalesced) entries it is, and if it is one."""
    known, asked = flat_index(indices, shape), flat_index(wanted, shape)
    if not known.size:
        return np.zeros(asked.size, np.int64), np.zeros(asked.size, bool)
    place = np.minimum(np.searchsorted(known, asked), known.size - 1)
    return place, known[place] == asked


def values_at(indices: np.ndarray, data: np.ndarray, wanted: np.ndarray,
              shape: tuple[int, ...]) -> np.ndarray:
    """The values of (coalesced) entries at the places `wanted`, zero where there is none."""
    place, hit = found_at(indices, wanted, shape)
    result = np.zeros((place.size, *data.shape[1:]), data.dtype)
    result[hit] = data[place[hit]]
    return result


def nonzero_entries(dense: np.ndarray, sparse_dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates and values of what is not zero, `sparse_dim` dimensions being sparse."""
    mask = dense != 0
    if mask.ndim > sparse_dim:
        mask = mask.any(tuple(range(sparse_dim, mask.ndim)))
    if not sparse_dim:
        return np.zeros((0, int(mask)), np.int64), dense[None][:int(mask)].copy()
    where = np.nonzero(mask)
    return np.stack(where).astype(np.int64), dense[where]


def to_dense(indices: np.ndarray, data: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The whole array; entries of one place must have been added up."""
    dense = np.zeros(shape, data.dtype)
    if len(indices):
        dense[tuple(indices)] = data
    elif len(data):
        dense[...] = data[0]
    return dense


def _are_in_rows(row: np.ndarray, col: np.ndarray) -> bool:
    """Do places come row by row, each once?"""
    after, before = row[1:], row[:-1]
    return bool(((after > before) | ((after == before) & (col[1:] > col[:-1]))).all())


def compress(indices: np.ndarray, data: np.ndarray, shape: tuple[int, ...], layout: Any,
             blocksize: Any = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Coalesced coordinates (*batch, row, column) in a compressed form."""
    *batch, rows, cols = shape[:len(indices)]
    height, width = blocksize or (1, 1)
    row, col = indices[-2], indices[-1]
    if not batch and layout not in BLOCKED and layout in BY_ROW and _are_in_rows(row, col):
        outer = np.zeros(rows + 1, np.int64)
        np.cumsum(np.bincount(row, minlength=rows), out=outer[1:])
        return outer, col.copy(), data.copy()
    majors, minors = rows // height, cols // width
    major, minor = row // height, col // width
    if layout not in BY_ROW:
        majors, minors, major, minor = minors, majors, minor, major
    count = prod(batch)
    key = (flat_index(indices[:-2], tuple(batch)) * majors + major) * max(minors, 1) + minor
    blocks, of = np.unique(key, return_inverse=True)
    values = np.zeros((len(blocks), height, width, *data.shape[1:]), data.dtype)
    values[of, row % height, col % width] = data
    if layout not in BLOCKED:
        values = values[:, 0, 0]
    line, inner = np.divmod(blocks, max(minors, 1))
    sizes = np.bincount(line, minlength=count * majors).reshape(count, majors)
    totals = sizes.sum(1)
    if count and (totals != totals[0]).any():
        raise RuntimeError("Expect the same number of specified elements per batch.")
    outer = np.zeros((count, majors + 1), np.int64)
    np.cumsum(sizes, 1, out=outer[:, 1:])
    n = int(totals[0]) if count else 0
    return (outer.reshape(*batch, majors + 1), inner.reshape(*batch, n),
            values.reshape(*batch, n, *values.shape[1:]))


def expand(outer: np.ndarray, inner: np.ndarray, data: np.ndarray,
           layout: Any) -> tuple[np.ndarray, np.ndarray]:
    """The coordinates (*batch, row, column) of a compressed form, in the order of its values."""
    batch, n = inner.shape[:-1], inner.shape[-1]
    count, lines = prod(batch), outer.shape[-1] - 1
    sizes = np.diff(outer.reshape(count, lines + 1)).ravel()
    major = np.repeat(np.tile(np.arange(lines, dtype=np.int64), count), sizes)
    minor, of = inner.ravel().astype(np.int64), np.repeat(np.arange(count, dtype=np.int64), n)
    row, col = (major, minor) if layout in BY_ROW else (minor, major)
    dense = data.shape[len(batch) + 1:]
    if layout in BLOCKED:
        height, width = dense[:2]
        dense = dense[2:]
        row = (row[:, None, None] * height + np.arange(height)[:, None]
               + np.zeros(width, np.int64)).ravel()
        col = (col[:, None, None] * width + np.zeros((height, 1), np.int64)
               + np.arange(width)).ravel()
        of = np.repeat(of, height * width)
    places = np.unravel_index(of, batch) if batch else ()
    return np.stack([*places, row, col]).astype(np.int64), data.reshape(-1, *dense)


# ---- what must hold -----------------------------------------------------------------------------

def check_coordinate_parts(indices: np.ndarray, data: np.ndarray, shape: tuple[int, ...]) -> None:
    """Raise unless indices, values and size belong together."""
    if indices.ndim != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(indices.shape)}")
    sparse, dense = len(indices), data.ndim - 1
    if len(shape) != sparse + dense:
        raise RuntimeError("'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) "
                           f"= {len(shape)}, sparse_dim = {sparse}, dense_dim = {dense}")
    if data.ndim and indices.shape[1] != len(data):
        raise RuntimeError("indices and values must have same nnz, but got nnz from indices: "
                           f"{indices.shape[1]}, nnz from values: {len(data)}")
    if data.ndim and data.shape[1:] != tuple(shape[sparse:]):
        raise RuntimeError(f"values has incorrect size, expected "
                           f"{[len(data), *shape[sparse:]]}, got {list(data.shape)}")



def check_coordinates(indices: np.ndarray, data: np.ndarray, shape: tuple[int, ...],
                      flag: bool | None) -> None:
    """Raise if an index lies outside of the shape, or entries said to be coalesced are not."""
    for dim, (row, n) in enumerate(zip(indices, shape)):
        if row.size:
            low, high = row.min(), row.max()
            if low < 0:
                raise RuntimeError(f"found negative index {low} for dim {dim}")
            if high >= n:
                raise RuntimeError(f"size is inconsistent with indices: for dim {dim}, size is {n} "
                                   f"but found index {high}")
    if flag and not is_coalesced(indices, shape):
        raise RuntimeError("cannot set is_coalesced to true if indices correspond to uncoalesced "
                           "COO tensor")


def names_of(layout: Any) -> tuple[str, str]:
    return ("crow_indices", "col_indices") if layout in BY_ROW else ("ccol_indices", "row_indices")


def check_compressed(outer: np.ndarray, inner: np.ndarray, data: np.ndarray,
                     shape: tuple[int, ...], layout: Any) -> None:
    """Raise if these arrays are no tensor of that layout and shape."""
    first, second = names_of(layout)
    lines, across = ("row", "col") if layout in BY_ROW else ("col", "row")
    blocks = 2 if layout in BLOCKED else 0
    batch = outer.ndim - 1
    if outer.ndim < 1:
        raise RuntimeError(f"{first} must have dimensionality >= 1 but got {outer.ndim}")
    if inner.ndim != outer.ndim:
        raise RuntimeError(f"{first} and {second} dimensionalities must be equal but got "
                           f"{outer.ndim} and {inner.ndim}, respectively")
    if data.ndim <= batch + blocks:
        extra = "sum of batch and block dimensionalities" if blocks else "batch dimensionality"
        sizes = f"={batch} + {blocks}" if blocks else f"={batch}"
        raise RuntimeError(f"values must have dimensionality > {extra} ({sizes}) but got "
                           f"{data.ndim}")
    dense = data.ndim - batch - blocks - 1
    if len(shape) != batch + 2 + dense:
        raise RuntimeError("tensor dimensionality must be sum of batch, base, and dense "
                           f"dimensionalities (={batch} + 2 + {dense}) but got {len(shape)}")
    height, width = data.shape[batch + 1:batch + 3] if blocks else (1, 1)
    extents = {"row": (shape[batch], height), "col": (shape[batch + 1], width)}
    for name, (n, size) in extents.items():
        if size and n % size:
            raise RuntimeError(f"tensor shape[{batch + (name == 'col')}] (={n}) must be divisible "
                               f"with blocksize[{int(name == 'col')}] (={size}) as defined by "
                               "values shape")
    expected = extents[lines][0] // max(extents[lines][1], 1)
    label = f"{lines if lines == 'row' else 'column'}{' block' if blocks else ''}s"
    if outer.shape[-1] != expected + 1:
        raise RuntimeError(f"{first}.shape[-1] must be equal to the number of {label} + 1 "
                           f"(={expected + 1}), but got {outer.shape[-1]}")
    n = data.shape[batch]
    if inner.shape[-1] != n:
        raise RuntimeError(f"{second}.shape[-1] must be equal to nnz (={n}) as defined by "
                           f"values.shape[{batch}], but got {inner.shape[-1]}")
    if outer.dtype != inner.dtype:
        raise RuntimeError(f"{first} and {second} must have the same dtype, bot got "
                           f"{type_name(from_numpy_dtype(outer.dtype))} and "
                           f"{type_name(from_numpy_dtype(inner.dtype))}, respectively")
    if outer.dtype not in (np.int32, np.int64):
        raise RuntimeError(f"{first} and {second} dtype must be Int or Long, but got "
                           f"{type_name(from_numpy_dtype(outer.dtype))}")
    leading = outer.shape[:-1], inner.shape[:-1], data.shape[:batch], shape[:batch]
    if len(set(leading)) > 1:
        found = [list(each) for each in leading]
        raise RuntimeError(f"all batch dimensions of {first} (={found[0]}), {second} (={found[1]})"
                           f", and values (={found[2]}) must be equal to tensor batch dimensions "
                           f"(={found[3]})")
    for name, part in ((first, outer), (second, inner)):
        if part.strides[-1] != part.itemsize and part.shape[-1] > 1:
            raise RuntimeError(f"expected {name} to be a contiguous tensor per batch")
    check_entries(outer, inner, extents[across][0] // max(extents[across][1], 1), layout, n)


def check_entries(outer: np.ndarray, inner: np.ndarray, across: int, layout: Any, n: int) -> None:
    """Raise unless compressed indices begin at 0, end at `n` and never fall, and plain indices
    rise within each line and stay below `across`."""
    first, second = names_of(layout)
    lines, bound = ("nrows", "ncols") if layout in BY_ROW else ("ncols", "nrows")

    def fail(condition: str) -> RuntimeError:
        return RuntimeError(f"`{condition}` is not satisfied.")
    if (outer[..., 0] != 0).any():
        raise fail(f"{first}[..., 0] == 0")
    if (outer[..., -1] != n).any():
        raise fail(f"{first}[..., -1] == nnz")
    steps = np.diff(outer)
    if (steps < 0).any() or (steps > across).any():
        raise fail(f"0 <= {first}[..., 1:] - {first}[..., :-1] <= {bound}")
    if ((inner < 0) | (inner >= across)).any():
        raise fail(f"0 <= {second} < {bound}")
    starts = np.zeros(inner.shape[:-1] + (n + 1,), bool)
    np.put_along_axis(starts, outer, True, -1)
    if ((np.diff(inner) <= 0) & ~starts[..., 1:-1]).any():
        raise fail(f"{second}[..., {first}[..., i - 1]:{first}[..., i]] for all i = 1, ..., "
                   f"{lines} are sorted and distinct along the last dimension values")
