"""Copies of an array's elements in other places: turned, repeated, on a diagonal, replaced."""

import numpy as np

from flambeau.kernels._extension import Misfit, compiled
from flambeau.kernels.moving import views


@compiled("flip")
def flip(x, dims):
    """x with the order of elements reversed along some dimensions."""
    result = views.empty_like(x)
    result[...] = np.flip(x, dims) if x.ndim else x
    return result


@compiled("roll")
def roll(x, shifts, dims):
    """The elements of x moved along dimensions, or as one row if there are none, those that fall
    off at the other end."""
    if not x.size:
        return views.empty_like(x)
    return np.roll(np.ascontiguousarray(x), shifts, dims or None).reshape(x.shape)


def rot90(x, k, dims):
    """x turned by 90 degrees `k` times."""
    (a, b), k = dims, k % 4
    if k == 0:
        return np.array(x, order="C")
    if k == 2:
        return flip(x, dims)
    return flip(x, (b if k == 1 else a,)).swapaxes(a, b)


@compiled("triangle")
def triangle(x, diagonal, upper):
    """Zeros on one side of a diagonal of the last two dimensions."""
    return np.ascontiguousarray((np.triu if upper else np.tril)(x, diagonal))


def triu(x, diagonal):
    """Zeros below a diagonal."""
    return triangle(x, diagonal, True)


def tril(x, diagonal):
    """Zeros above a diagonal."""
    return triangle(x, diagonal, False)


@compiled("repeat")
def repeat(x, repeats):
    """x repeated along each dimension, of which it may get some in front."""
    return np.tile(x.reshape((1,) * (len(repeats) - x.ndim) + x.shape), repeats)


# ---- parts of zeros, and of copies ---------------------------------------------------------------

@compiled("embedded_diagonal")
def embedded_diagonal(x, shape, offset, dim1, dim2):
    """Zeros of that shape with x as the diagonal of two dimensions."""
    result = np.zeros(shape, x.dtype)
    views.diagonal(result, offset, dim1, dim2)[...] = x
    return result


def diagonal_embedding(x, offset, dim1, dim2):
    """Zeros with x, its last dimension, as the diagonal of two new ones."""
    if dim1 == dim2 or not x.ndim:
        raise Misfit
    if dim1 > dim2:
        dim1, dim2, offset = dim2, dim1, -offset
    size, shape = x.shape[-1] + abs(offset), [*x.shape[:-1]]
    shape.insert(dim1, size)
    shape.insert(dim2, size)
    return embedded_diagonal(x, tuple(shape), offset, dim1, dim2)


@compiled("diagonal_scatter")
def diagonal_scatter(x, src, offset, dim1, dim2):
    """A copy of x with `src` as a diagonal."""
    result = np.array(x, order="C")
    views.diagonal(result, offset, dim1, dim2)[...] = src
    return result


def _slices_at(x, ndim, dim, start, step, count):
    lead = (slice(None),) * dim
    return (*lead, start, ...) if x.ndim < ndim else (
        *lead, slice(start, start + count * step, step), ...)


@compiled("embedded_slices")
def embedded_slices(x, shape, dim, start, step):
    """Zeros of that shape with x as the slices start, start + step … of it; as one of them, if x
    lacks the dimension."""
    result = np.zeros(shape, x.dtype)
    count = x.shape[dim] if x.ndim == len(shape) else 1
    result[_slices_at(x, len(shape), dim, start, step, count)] = x
    return result


@compiled("scattered_slices")
def scattered_slices(x, src, dim, start, step):
    """A copy of x with `src` as those slices of it."""
    result = np.array(x, order="C")
    write_slices(result, src, dim, start, step)
    return result


def write_slices(x, src, dim, start, step):
    """Write `src` as those slices of x."""
    count = src.shape[dim] if src.ndim == x.ndim else 1
    x[_slices_at(src, x.ndim, dim, start, step, count)] = src


@compiled("block_diag")
def block_diag(arrays):
    """A matrix with matrices, vectors as rows, and numbers along its diagonal."""
    matrices = [x.reshape((1,) * (2 - x.ndim) + x.shape) for x in arrays]
    result = np.zeros([sum(m.shape[d] for m in matrices) for d in range(2)], matrices[0].dtype)
    row = column = 0
    for m in matrices:
        result[row:row + m.shape[0], column:column + m.shape[1]] = m
        row, column = row + m.shape[0], column + m.shape[1]
    return result


@compiled("summed_windows")
def summed_windows(x, shape, dim, size, step):
    """Zeros of that shape with windows, the last dimension of x, added where they were taken."""
    if not shape:
        return x.sum().astype(x.dtype)
    r = np.zeros(shape, x.dtype)
    lead = (slice(None),) * dim
    count = x.shape[dim]
    for i in range(size):
        r[(*lead, slice(i, i + count * step, step))] += x[..., i]
    return r
