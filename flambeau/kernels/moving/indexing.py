"""Reading and writing by index: gather, scatter, rows, and the gradient of indexing.

Names that end in an underscore change their first argument and return it; the same name without one
works on a copy. Indices are int64 (or int32) and, where torch allows no negative ones, are checked
as torch checks them.
"""

import math

import numpy as np

from flambeau.kernels._extension import compiled
from flambeau.kernels.declaration import is_narrow, mover, updater
from flambeau.kernels.moving import views

_OTHER_NAMES = {"add": "sum", "multiply": "prod"}       # of the reductions of `scatter_reduce`


@mover
def copy(x):
    """A contiguous copy."""
    return np.array(x, order="C")


@mover
def to_update(x):
    """A contiguous copy, to be changed; or x itself, where the result of a call is to go there."""
    return np.array(x, order="C")


@mover
def embedding(weight, indices):
    """Rows of `weight`."""
    _check(indices, len(weight), IndexError, "index out of range in self")
    return weight[indices]


@updater
def reduce_rows_(x, axis, rows, values, skipped=-1, reduce="sum"):
    """x[rows] combined with values along `axis`, by "sum", "prod", "amax" or "amin", all of them
    where rows are equal; rows equal to `skipped` do not count."""
    x_rows, values = np.moveaxis(x, axis, 0), np.moveaxis(values, axis, 0)
    if skipped >= 0:
        rows, values = rows[rows != skipped], values[rows != skipped]
    if x.dtype.kind == "b" or reduce != "sum" or x.ndim == 1 or not x.size:
        combiner(reduce, x.dtype).at(x_rows, rows, values)
        return x
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    if len(ordered):
        starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
        x_rows[ordered[starts]] += np.add.reduceat(values[order], starts, axis=0)
    return x


def add_rows_(x, axis, rows, values, skipped=-1):
    """x[rows] += values along `axis`, as `reduce_rows_`."""
    return reduce_rows_(x, axis, rows, values, skipped, "sum")


def add_each_(x, axis, rows, values, skipped=-1, alpha=1):
    """x[rows] += alpha * values along `axis`, where each sum of narrow floats is rounded."""
    x_rows, values = np.moveaxis(x, axis, 0), np.moveaxis(values, axis, 0)
    if skipped >= 0:
        rows, values = rows[rows != skipped], values[rows != skipped]
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    first = np.concatenate(([True], ordered[1:] != ordered[:-1])) if len(rows) else ordered
    starts = np.flatnonzero(first)
    turn = np.arange(len(rows)) - np.repeat(starts, np.diff([*starts, len(rows)]))
    by_turn = np.split(np.argsort(turn, kind="stable"), np.cumsum(np.bincount(turn))[:-1])
    for places in by_turn if len(rows) else ():     # no row is named twice in a turn
        at = ordered[places]
        step = alpha * values[order[places]].astype(np.float32)
        x_rows[at] = (x_rows[at].astype(np.float32) + step).astype(x.dtype)
    return x


def add_in_turn_(x, axis, rows, values, skipped=-1):
    """x[rows] += values along `axis`, one after the other where rows are equal."""
    add = add_each_ if is_narrow(x.dtype) else add_rows_
    return add(x, axis, rows, values, skipped)


def embedding_backward(g, indices, num_embeddings, padding_idx=-1, scale_grad_by_freq=False):
    """Gradient of `embedding` in the weight; on demand a row's is divided by its uses."""
    width = g.shape[-1]
    if scale_grad_by_freq:
        counts = np.bincount(indices.reshape(-1), minlength=num_embeddings)
        g = (g / counts[indices][..., None].astype(np.float32)).astype(g.dtype)
    indices, g = indices.reshape(-1), g.reshape(-1, width)
    _check(indices, num_embeddings, IndexError, "index out of range in self")
    table = np.zeros((num_embeddings, width), g.dtype)
    return add_in_turn_(table, 0, indices, g, padding_idx)


@mover
def gather(x, axis, indices):
    """result[i][j] = x[indices[i][j]][j] for axis 0, and so on."""
    if x.ndim == 0 or indices.ndim == 0:
        _check_axis(indices, x.shape[axis] if x.ndim else 1, axis)
        return x.reshape(-1)[indices.reshape(-1)].reshape(indices.shape)
    _check_axis(indices, x.shape[axis], axis)
    indices = np.ascontiguousarray(indices)         # whose order the result gets
    return np.take_along_axis(_clip_to(x, indices.shape, axis), indices, axis)


@updater
def scatter_(x, axis, indices, src, reduce=None, include_self=True):
    """Write `src`, array or scalar, where `indices` say; `reduce` combines what meets there."""
    if x.ndim == 0 or indices.ndim == 0:
        flat = src.reshape(-1) if isinstance(src, np.ndarray) else src
        scatter_.reference(x.reshape(-1), 0, indices.reshape(-1), flat, reduce, include_self)
        return x
    _check_axis(indices, x.shape[axis], axis)
    if indices.size == 0:
        return x
    if isinstance(src, np.ndarray):
        src = src[tuple(slice(s) for s in indices.shape)]
    where = tuple(indices if a == axis % x.ndim else i for a,
                  i in enumerate(np.ogrid[_ranges(indices.shape)]))
    if reduce is None:
        x[where] = src
    else:
        _reduce_at(x, where, src, _OTHER_NAMES.get(reduce, reduce), include_self, indices.shape)
    return x


def scatter(x, axis, indices, src, reduce=None, include_self=True):
    """`scatter_` on a copy of x."""
    result = to_update(x)
    if reduce is None or x.dtype.kind not in "fi" or is_narrow(x.dtype) or not (
            x.ndim and indices.size and isinstance(src, np.ndarray)):
        return scatter_(result, axis, indices, src, reduce, include_self)
    reduce, axis = _OTHER_NAMES.get(reduce, reduce), axis % x.ndim
    operation, rows = "sum" if reduce == "mean" else reduce, _rows(x, axis, indices, src)
    if rows is None:
        if not include_self:
            nothing = np.full(indices.shape, neutral(reduce, x.dtype), x.dtype)
            scatter_(result, axis, indices, nothing)
        scatter_(result, axis, indices, src, operation)
    else:
        _check_axis(rows, x.shape[axis], axis)
        if not include_self:
            result[(*(slice(None),) * axis, rows)] = neutral(reduce, x.dtype)
        reduce_rows_(result, axis, rows, src, -1, operation)
    if reduce == "mean":
        if rows is None:
            counts = scatter_add_(np.zeros(x.shape, np.int64), axis, indices,
                                  np.ones(indices.shape, np.int64))
        else:
            counts = np.bincount(rows, minlength=x.shape[axis])
            counts = counts.reshape(-1, *(1,) * (x.ndim - 1 - axis))
        _divide(result, counts, include_self)
    return result


def _rows(x, axis, indices, src):
    """The vector that `indices` repeats, if it names whole slices along `axis`, else None."""
    others = [a for a in range(x.ndim) if a != axis]
    if src.shape != indices.shape or not others or any(
            x.shape[a] != indices.shape[a] or (indices.strides[a] and indices.shape[a] > 1)
            for a in others):
        return None
    return indices[tuple([slice(None) if a == axis else 0 for a in range(x.ndim)])]


@updater
def scatter_add_(x, axis, indices, src):
    """Add `src` to x where `indices` say along `axis`."""
    return scatter_.reference(x, axis, indices, src, "sum", True)


def scatter_add(x, axis, indices, src):
    """`scatter_add_` on a copy of x."""
    return scatter(x, axis, indices, src, "sum")


@mover
def index_select(x, axis, indices):
    """The slices of x along `axis` that `indices` name."""
    if x.ndim == 0:
        _check(indices, 1, IndexError, "index out of range in self")
        return x.copy()
    size, at = x.shape[axis], indices.reshape(-1)
    if axis % x.ndim and at.size and (at.min() < 0 or at.max() >= size):
        wrong = at[(at < 0) | (at >= size)][0]
        raise RuntimeError(f"INDICES element is out of DATA bounds, id={wrong} axis_dim={size}")
    _check(at, size, IndexError, "index out of range in self")
    return np.take(x, at, axis=axis)


def adds_slices(rank, axis, alpha):
    """Whether torch's `index_add` sums what meets in one place before it rounds."""
    return rank > 1 and axis % rank in (0, rank - 1) and alpha == 1


def index_add_(x, axis, indices, src, alpha=1):
    """Add alpha * slices of `src` to the slices of x along `axis` that `indices` name."""
    if x.ndim <= 1:
        _check(indices, x.size, IndexError, "index out of range in self")
    else:
        _check_axis(indices, x.shape[axis], axis)
    if is_narrow(x.dtype) and x.ndim and src.ndim and not adds_slices(x.ndim, axis, alpha):
        return add_each_(x, axis, indices.reshape(-1), src, alpha=alpha)
    values = src
    if not isinstance(alpha, (int, float)) or alpha != 1:
        with np.errstate(all="ignore"):
            values = src * np.asarray(alpha).astype(src.dtype)
    if x.ndim == 0:
        add_rows_(x.reshape(1), 0, indices.reshape(-1), values.reshape(-1))
    else:
        add_rows_(x, axis % x.ndim, indices.reshape(-1), values if src.ndim else values[None])
    return x


def index_add(x, axis, indices, src, alpha=1):
    """`index_add_` on a copy of x."""
    return index_add_(to_update(x), axis, indices, src, alpha)


@updater
def index_copy_(x, axis, indices, src):
    """Write slices of `src` to the slices of x along `axis` that `indices` name."""
    size = x.shape[axis] if x.ndim else 1
    _check(indices, size, IndexError, "index_copy_(): index {index} is out of bounds for dimension "
           f"{axis % max(x.ndim, 1)} with size {size}")
    if x.ndim == 0:
        x[...] = src.reshape(-1)[-1]
    else:
        np.moveaxis(x, axis, 0)[indices.reshape(-1)] = (
            np.moveaxis(src, axis, 0) if src.ndim else src)
    return x


def index_copy(x, axis, indices, src):
    """`index_copy_` on a copy of x."""
    return index_copy_(to_update(x), axis, indices, src)


def index_put_(x, indices, values, accumulate):
    """x[indices] = values, or += where equal indices add up; `indices` as NumPy takes them."""
    try:
        if not accumulate:
            x[indices] = values
        elif is_narrow(x.dtype):  # one after the other, each sum rounded
            np.add.at(x, indices, values)
        elif type(indices) is tuple and all(map(_is_integers, indices)):
            _accumulate(x, indices, values)
        else:
            _add_at(x, indices, values)
    except IndexError as error:
        raise _explain(error, indices, x.shape) from None
    return x


def _accumulate(x, indices, values):
    """x[indices] += values for integer arrays that index the first axes: those are taken as one."""
    depth = len(indices)
    for axis, (index, size) in enumerate(zip(indices, x.shape)):
        _check_wrapped(index, size, axis)
    rows = 0
    for index, size in zip(indices, x.shape):
        rows = rows * size + np.where(index < 0, index + size, index)
    values = np.broadcast_to(values, (*rows.shape, *x.shape[depth:]))
    flat = x.reshape(math.prod(x.shape[:depth]), *x.shape[depth:])
    add_rows_(flat, 0, rows.reshape(-1), values.reshape(rows.size, *x.shape[depth:]))
    if not np.shares_memory(flat, x):
        x[...] = flat.reshape(x.shape)


@updater
def _add_at(x, indices, values):
    (np.logical_or if x.dtype.kind == "b" else np.add).at(x, indices, values)
    return x


def index_put(x, indices, values, accumulate=False):
    """`index_put_` on a copy of x."""
    return index_put_(to_update(x), indices, values, accumulate)


def take(x, indices):
    """Elements of the flattened x; negative indices count from the end."""
    if indices.size and not x.size:
        raise IndexError("take(): tried to take from an empty tensor")
    wrong = (indices < -x.size) | (indices >= x.size)
    if wrong.any():
        raise IndexError(f"out of range: tried to access index {indices[wrong][0]} "
                         f"on a tensor of {x.size} elements.")
    return np.take(x.reshape(-1), indices)          # in rows, whatever the order of the indices


@mover
def masked(x, mask):
    """Elements of x where a mask of the same shape is true."""
    return x[mask]


@compiled("nonzero")
@mover
def nonzero(x):
    """Coordinates of the elements that are not zero, one row each."""
    found = np.argwhere(x).astype(np.int64, copy=False)
    return found if found.size else views.empty_in_order(found.shape, np.int64, (1, 0))


def _is_integers(index):
    return isinstance(index, np.ndarray) and index.dtype.kind in "iu"


def _clip_to(x, shape, axis):
    return x[tuple(slice(None) if a == axis % x.ndim else slice(s) for a, s in enumerate(shape))]


def _ranges(shape):
    return tuple(slice(0, s) for s in shape)


def outside(index, size):
    """The indices that are none of -size to size - 1, in a vector."""
    return index[(index >= size) | (index < -size)].reshape(-1)


def _check(indices, size, kind, message):
    if indices.size and (indices.min() < 0 or indices.max() >= size):
        raise kind(message.format(index=indices[(indices < 0) | (indices >= size)].reshape(-1)[0]))


def _check_axis(indices, size, axis):
    _check(indices, size, RuntimeError,
           f"index {{index}} is out of bounds for dimension {axis} with size {size}")


def _check_wrapped(indices, size, axis):
    wrong = (indices < -size) | (indices >= size)
    if wrong.any():
        raise IndexError(f"index {indices[wrong].reshape(-1)[0]} is out of bounds "
                         f"for dimension {axis} with size {size}")


def _explain(error, indices, shape):
    """NumPy's error in torch's words, where one integer array is to blame."""
    axis = 0
    for index in indices if type(indices) is tuple else (indices,):
        if _is_integers(index) and axis < len(shape):
            wrong = (index < -shape[axis]) | (index >= shape[axis])
            if wrong.any():
                return IndexError(
                    f"index {index[wrong].reshape(-1)[0]} is out of bounds for dimension {axis} "
                    f"with size {shape[axis]}")
        axis += (index.ndim if isinstance(index, np.ndarray) and index.dtype.kind == "b"
                 else index is not None)
    return error


def _reduce_at(x, where, src, reduce, include_self, shape):
    if reduce == "mean":
        counts = np.zeros(x.shape, np.int64)
        np.add.at(counts, where, 1)
    if not include_self:
        x[where] = neutral(reduce, x.dtype)
    combiner(reduce, x.dtype).at(x, where, src)
    if reduce == "mean":
        _divide(x, counts, include_self)


def combiner(reduce, dtype):
    """The function of two arrays that a reduction is made of."""
    if dtype.kind == "b" and reduce in ("sum", "mean", "prod"):
        return np.logical_and if reduce == "prod" else np.logical_or
    return {"prod": np.multiply, "amax": np.maximum, "amin": np.minimum}.get(reduce, np.add)


def _divide(x, counts, include_self):
    """Sums into means; what nothing was added to, or counted in, stays."""
    counts = np.maximum(counts + include_self, 1).astype(x.dtype)
    if x.dtype.kind in "iu":
        x //= counts
    else:
        x /= counts


def neutral(reduce, dtype):
    """What a reduction of nothing gives."""
    if reduce in ("sum", "mean", "prod"):
        return reduce == "prod"
    if dtype.kind == "f":
        return -math.inf if reduce == "amax" else math.inf
    if dtype.kind == "b":
        return reduce == "amin"
    return np.iinfo(dtype).min if reduce == "amax" else np.iinfo(dtype).max
