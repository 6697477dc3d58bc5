"""Sorting and its kin.

NaN counts as greater than every number, indices are int64. Ties keep their order, but for `topk`,
`kthvalue` and `mode`, which find those that torch finds (`selection.py`).
"""

import math

import numpy as np

from flambeau.kernels.declaration import is_narrow, kernel, mover
from flambeau.kernels.moving import selection, views


@mover
def sort(x, axis, descending=False, stable=True):
    """The sorted elements and their positions, both in memory as the input is."""
    if x.ndim == 0:
        return x.copy(), np.zeros((), np.int64)
    if not x.size:
        return views.empty_like(x), views.empty_like(x, np.int64)
    if not x.flags.c_contiguous:
        order = views.memory_order(x)
        found = sort(np.ascontiguousarray(x.transpose(order)), order.index(axis % x.ndim),
                     descending, stable)
        return tuple([views.in_order(f, order) for f in found])
    wide = x.astype(np.float32) if is_narrow(x.dtype) else x
    if descending:
        reverse = (slice(None),) * (axis % x.ndim) + (slice(None, None, -1),)
        order = x.shape[axis] - 1 - np.argsort(wide[reverse], axis=axis, kind="stable")[reverse]
    else:
        order = np.argsort(wide, axis=axis, kind="stable")
    return np.take_along_axis(x, order, axis), order.astype(np.int64, copy=False)


@kernel
def topk(x, k, axis, largest=True, sorted=True):
    """The `k` largest or smallest, in order if `sorted`, and where they are."""
    if not 0 <= k <= (x.shape[axis] if x.ndim else 1):
        raise RuntimeError("selected index k out of range")
    if x.ndim == 0:
        return x.copy(), np.zeros((), np.int64)  # whatever k is

    def chosen(items, rank):
        if k:
            selection.first_items(items, [-r for r in rank] if largest else rank, k, sorted)
        return items[:k]

    order = _choose_per_line(x, axis, chosen, k)
    return np.take_along_axis(x, order, axis), order


def _check_extent(name, x, axis):
    if x.ndim and not x.shape[axis]:
        raise IndexError(f"{name}(): Expected reduction dim {axis} to have non-zero size.")


def _ranks(line):
    return np.unique(line, return_inverse=True)[1].reshape(-1).tolist()


def _choose_per_line(x, axis, choose, count, ranks=_ranks):
    """What `choose(positions, ranks)` gives, `count` positions, for each line along `axis`."""
    lines = np.moveaxis(x, axis, -1)
    n = lines.shape[-1]
    order = np.empty((*lines.shape[:-1], count), np.int64)
    for at in np.ndindex(lines.shape[:-1]):
        order[at] = choose(list(range(n)), ranks(lines[at]))
    return np.ascontiguousarray(np.moveaxis(order, -1, axis))


@kernel
def kthvalue(x, k, axis, keepdims=False):
    """The k-th smallest element, counted from 1, and its position."""
    _check_extent("kthvalue", x, axis)
    if not 1 <= k <= (x.shape[axis] if x.ndim else 1):
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {axis}")
    if x.ndim == 0:
        return x.copy(), np.zeros((), np.int64)

    def chosen(items, rank):
        selection.quick_select(items, rank, k - 1)
        return items[k - 1]

    order = _choose_per_line(x, axis, chosen, 1)
    return _drop(np.take_along_axis(x, order, axis), order, axis, keepdims)


@kernel
def median(x, axis, keepdims=False):
    """The lower median and its position; NaN, the first one, where there is any."""
    _check_extent("median", x, axis)
    if x.ndim == 0:
        return x.copy(), np.zeros((), np.int64)
    order = np.take(np.argsort(x, axis=axis, kind="stable"), [(x.shape[axis] - 1) // 2], axis=axis)
    if x.dtype.kind == "f":
        nan = np.isnan(x)
        order = np.where(nan.any(axis=axis, keepdims=True), nan.argmax(axis=axis, keepdims=True),
                         order)
    return _drop(np.take_along_axis(x, order, axis), order, axis, keepdims)


@kernel
def nanmedian(x, axis, keepdims=False):
    """The lower median of what is not NaN, and its position."""
    _check_extent("nanmedian", x, axis)
    if x.ndim == 0:
        return x.copy(), np.zeros((), np.int64)
    nan = np.isnan(x) if x.dtype.kind == "f" else np.zeros(x.shape, bool)
    count = np.maximum(x.shape[axis] - nan.sum(axis=axis, keepdims=True), 1)
    order = np.take_along_axis(np.argsort(x, axis=axis, kind="stable"), (count - 1) // 2, axis)
    return _drop(np.take_along_axis(x, order, axis), order, axis, keepdims)


def _sort_flattened(x, along):
    if not x.size:
        least = x.dtype.kind == "b" or np.iinfo(x.dtype).min if x.dtype.kind in "bui" else np.nan
        return np.full((), least, x.dtype)
    return np.asarray(along(x.reshape(-1), 0, False)[0])


@kernel
def median_all(x):
    """The lower median of all elements; NaN if there is any."""
    return _sort_flattened(x, median)


@kernel
def nanmedian_all(x):
    """The lower median of all elements that are not NaN."""
    return _sort_flattened(x, nanmedian)


@kernel
def mode(x, axis, keepdims=False):
    """The most frequent element, the smallest of equally frequent ones, and a position of it."""
    _check_extent("mode", x, axis)
    if x.ndim == 0:
        return x.copy(), np.zeros((), np.int64)

    def chosen(items, values):
        selection.sort(items, values, len(items))
        best, run, most = items[0], 0, 0
        for item, following in zip(items, [*items[1:], None]):
            run += 1
            if following is None or values[item] != values[following]:
                if run > most:
                    best, most = item, run
                run = 0
        return [best]

    order = _choose_per_line(x, axis, chosen, 1, np.ndarray.tolist)
    return _drop(np.take_along_axis(x, order, axis), order, axis, keepdims)


@kernel
def unique(x, return_inverse=False, return_counts=False):
    """The distinct elements in order, where each element is among them, and how often."""
    ordered, order = sort(x.reshape(-1), 0, False, True)
    values, runs, counts = _runs(ordered[:, None])
    inverse = None
    if return_inverse:
        inverse = np.empty(x.size, np.int64)
        inverse[order] = runs
        inverse = inverse.reshape(x.shape)
    return values[:, 0], inverse, counts if return_counts else None


@kernel
def unique_rows(x, axis, return_inverse=False, return_counts=False):
    """As `unique`, for slices along `axis`, in lexicographic order."""
    rows = np.moveaxis(x, axis, 0)
    flat = rows.reshape(len(rows), math.prod(rows.shape[1:]))
    order = np.lexsort(flat.T[::-1]) if flat.shape[1] else np.arange(len(flat))
    values, inverse, counts = _runs(flat[order])
    where = np.empty(len(order), np.int64)
    where[order] = inverse
    values = np.moveaxis(values.reshape(len(values), *rows.shape[1:]), 0, axis)
    return (np.ascontiguousarray(values), where if return_inverse else None,
            counts if return_counts else None)


@kernel
def unique_consecutive(x, axis=None, return_inverse=False, return_counts=False):
    """As `unique`, but only neighbours merge; over the flattened x, or slices along `axis`."""
    if axis is None:
        values, inverse, counts = _runs(x.reshape(-1, 1))
        values, inverse = values[:, 0], inverse.reshape(x.shape)
    else:
        rows = np.moveaxis(x, axis, 0)
        values, inverse, counts = _runs(rows.reshape(len(rows), math.prod(rows.shape[1:])))
        values = np.ascontiguousarray(np.moveaxis(values.reshape(-1, *rows.shape[1:]), 0, axis))
    return values, inverse if return_inverse else None, counts if return_counts else None


def _runs(rows):
    """The first of each run of equal rows, the run each row is in, and the lengths."""
    if rows.shape[1] == 1:
        changes = rows[1:, 0] != rows[:-1, 0]
    else:
        changes = (rows[1:] != rows[:-1]).any(axis=1)
    if not len(rows):
        return rows, np.zeros(0, np.int64), np.zeros(0, np.int64)
    starts = np.concatenate(([True], changes))
    first = np.flatnonzero(starts)
    return rows[first], np.cumsum(starts) - 1, np.diff(np.append(first, len(rows)))


def _drop(values, order, axis, keepdims):
    order = order.astype(np.int64, copy=False)
    return (values, order) if keepdims else (values.squeeze(axis), order.squeeze(axis))
