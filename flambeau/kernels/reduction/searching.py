"""Searching in sorted sequences, places of what is not zero, equality, and histograms."""

import numpy as np

from flambeau.kernels.declaration import mover
from flambeau.kernels.dtypes import type_title
from flambeau.kernels.moving import indexing
from flambeau.kernels.reduction import sorting

# ---- in what is sorted --------------------------------------------------------------------------


@mover
def searchsorted(sequence, values, sorter, int32, right, side):
    """Where values would keep the last dimension of `sequence` sorted: before equal elements, or
    after them if `right`."""
    if side is not None:
        if side not in ("left", "right"):
            raise RuntimeError("torch.searchsorted(): side can only be 'left' or 'right' but got "
                               f"{side}")
        if right and side == "left":
            raise RuntimeError("torch.searchsorted(): side and right can't be set to opposites, "
                               "got side of left while right was True")
        right = side == "right"
    _check_sequence(sequence, values, sorter)
    if sorter is not None:
        sequence = np.take_along_axis(sequence, sorter, -1)
    side, target = "right" if right else "left", np.int32 if int32 else np.int64
    search = np.searchsorted
    if sequence.dtype.kind in "fV" and sequence.size and (
        np.isnan(sequence[..., -1]).any() or np.isnan(values).any()):
        search = _bisect  # NumPy takes NaN for the greatest number
    if sequence.ndim == 1:
        return np.asarray(search(sequence, values, side)).astype(target)
    result = np.empty(values.shape, target)
    for row in np.ndindex(*sequence.shape[:-1]):
        result[row] = search(sequence[row], values[row], side)
    return result


def _check_sequence(sequence, values, sorter):
    shape, wanted = sequence.shape, values.shape
    if not wanted and len(shape) != 1:
        raise RuntimeError("torch.searchsorted(): input value can be a scalar only when boundaries "
                           f"tensor dimension is 1, but we got boundaries tensor dim({len(shape)}) "
                           "and input value's dim(0) numel(1)")
    if not shape:
        raise RuntimeError("torch.searchsorted(): boundaries tensor should have positive "
                           "dimension, but got 0 dimension")
    if len(shape) > 1 and (len(shape) != len(wanted) or shape[:-1] != wanted[:-1]):
        raise RuntimeError("torch.searchsorted(): boundaries tensor should be 1 dimension or the "
                           "first N-1 dimensions of boundaries tensor and input value tensor must "
                           f"match, but we got boundaries tensor {list(shape)} and input value "
                           f"tensor {list(wanted)}")
    if sorter is not None and sorter.shape != shape:
        raise RuntimeError("torch.searchsorted(): boundary and sorter must have the same size, but "
                           f"got boundary tensor {list(shape)}and got sorter tensor "
                           f"{list(sorter.shape)}")
    if sorter is not None and sorter.dtype != np.int64:
        raise RuntimeError("torch.searchsorted(): sorter must be a tensor of long dtype but got "
                           f"dtype {type_title(sorter.dtype)}")


def _bisect(sequence, values, side):
    """Bisection by comparisons as IEEE 754 has them: none with NaN holds."""
    stops = np.greater if side == "right" else np.greater_equal
    low, high = np.zeros(values.shape, np.int64), np.full(values.shape, len(sequence))
    while (open_ := low < high).any():
        middle = (low + high) // 2
        stop = stops(sequence[np.minimum(middle, len(sequence) - 1)], values)
        low, high = np.where(open_ & ~stop, middle + 1, low), np.where(open_ & stop, middle, high)
    return low


@mover
def bucketize(values, boundaries, int32, right):
    """Which of the buckets between sorted boundaries each value falls into."""
    if boundaries.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    return searchsorted(boundaries, values, None, int32, right, None)


# ---- what is not zero ---------------------------------------------------------------------------


@mover
def nonzero_static(x, size, fill_value):
    """`size` rows of `nonzero`: the first ones, or all of them and then `fill_value`."""
    found = indexing.nonzero(x)[:size]
    rest = np.full((size - len(found), x.ndim), fill_value, np.int64)
    return np.concatenate([found, rest])


@mover
def same(x, y):
    """Have both the same shape and elements?"""
    return x.shape == y.shape and bool(np.all(x == y))


# ---- distinct elements --------------------------------------------------------------------------


def _asked(found, inverse, counts):
    none = np.empty(0, np.int64)
    return found[0], found[1] if inverse else none, found[2] if counts else none


@mover
def distinct(x, inverse, counts):
    """The distinct elements in order; if asked for, the place of each element among them, and how
    often each occurs (else empty)."""
    return _asked(sorting.unique(x, True, True), inverse, counts)


@mover
def distinct_runs(x, inverse, counts):
    """The elements without those that equal the one before; as `distinct`."""
    return _asked(sorting.unique_consecutive(x, None, True, True), inverse, counts)


# ---- histograms ---------------------------------------------------------------------------------


@mover
def count_in_bins(x, bins, low, high):
    """How many elements fall into each of `bins` equal parts of [low, high], in the elements' own
    type; 0, 0 stands for the range of the elements."""
    low, high = _limits(x, low, high)
    low, high = x.dtype.type(low), x.dtype.type(high)
    x = x.reshape(-1)
    x = x[(x >= low) & (x <= high)]
    place = ((x - low) * x.dtype.type(bins) / (high - low)).astype(np.int64)
    return np.bincount(np.minimum(place, bins - 1), minlength=bins).astype(x.dtype)


def _limits(x, low, high):
    low, high = float(low), float(high)
    if low == high == 0 and x.size:
        low, high = float(x.min()), float(x.max())
    if not (np.isfinite(low) and np.isfinite(high)):
        raise RuntimeError(f"torch.histc: range of [{low:g}, {high:g}] is not finite")
    if low > high:
        raise RuntimeError("torch.histc: max must be larger than min")
    return (low - 1, high + 1) if low == high else (low, high)


@mover
def bin_edges(points, axis, bins, limits):
    """The edges of equal bins from the least coordinate to the greatest, or between two limits."""
    low, high = _range(points[:, axis], axis, limits)
    return np.linspace(low, high, bins + 1).astype(points.dtype)


def _range(x, axis, limits):
    low, high = limits if limits is not None else (x.min(), x.max()) if x.size else (0, 0)
    low, high = float(low), float(high)
    if not (np.isfinite(low) and np.isfinite(high)):
        raise RuntimeError(f"torch.histogramdd: dimension {axis}'s range [{low:g}, {high:g}] is "
                           "not finite")
    if low > high:
        raise RuntimeError(f"torch.histogramdd: min should not exceed max, but got min {low:g} max "
                           f"{high:g} for dimension {axis}")
    if low == high:
        return (0.0, 1.0) if not x.size and limits is None else (low - 0.5, high + 0.5)
    return low, high


@mover
def count_in_grid(points, weight, edges):
    """The sums of the weights of points, the rows of an array, in each cell of a grid, and the cell
    of each point (-1: none)."""
    shape = tuple([len(e) - 1 for e in edges])
    inside, place = np.ones(len(points), bool), np.zeros(len(points), np.int64)
    for column, e in zip(points.T, edges):
        inside &= (column >= e[0]) & (column <= e[-1])
        bin_of = np.searchsorted(e, column, "right") - 1
        place = place * (len(e) - 1) + np.minimum(bin_of, len(e) - 2)  # the last one is closed
    wide = None if weight is None else weight.reshape(-1)[inside].astype(np.float64)
    total = np.bincount(place[inside], wide, int(np.prod(shape))).reshape(shape)
    return total.astype(points.dtype), np.where(inside, place, -1)
