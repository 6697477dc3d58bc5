"""Windows on the memory under an array, of any extents, strides and offset, all in elements.

A *geometry* `(size, stride, offset)` says where a window's elements lie in a row of memory.
"""

import numpy as np

from flambeau.kernels._extension import Misfit, compiled
from flambeau.kernels.moving import views
from flambeau.kernels.moving.views import array_offset, array_root, array_strides


@compiled("geometry")
def geometry(x):
    """The window that x is of the memory under it."""
    return x.shape, array_strides(x), array_offset(x) // x.itemsize


def extent(*geometries):
    """The elements of a memory that holds these windows."""
    return 1 + max([offset + sum([(n - 1) * s for n, s in zip(size, stride)])
                    for size, stride, offset in geometries if 0 not in size], default=0)


def places(window):
    """For each element of a window, its place in memory."""
    size, stride, offset = window
    index = np.full((), offset, np.int64)
    for n, s in zip(size, stride):
        index = index[..., None] + np.arange(n, dtype=np.int64) * s
    return index.reshape(size)


def _window(memory, geometry):
    size, stride, offset = geometry
    item = memory.itemsize
    return views.strided(memory, size, tuple([s * item for s in stride]), offset * item)


@compiled("as_strided")
def as_strided(x, size, stride, offset):
    """A view of the memory under x; without an `offset` it begins where x does."""
    if len(size) != len(stride) or any(n < 0 for n in (*size, *stride)):
        raise Misfit
    root, item = array_root(x), x.itemsize
    if offset is None:
        offset = array_offset(x) // item
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    last = offset + sum((n - 1) * s for n, s in zip(size, stride)) if 0 not in size else -1
    if (last + 1) * item > root.nbytes:
        raise RuntimeError(f"setStorage: sizes {list(size)}, strides {list(stride)}, storage "
                           f"offset {offset}, and itemsize {item} requiring a storage size of "
                           f"{(last + 1) * item} are out of bounds for storage of size "
                           f"{root.nbytes}")
    return views.strided(x, size, tuple([s * item for s in stride]),
                         offset * item - array_offset(x))


@compiled("as_strided_scatter")
def as_strided_scatter(x, src, size, stride, offset):
    """A copy of x, laid out as x is, with `src` where a window on its memory lies."""
    if as_strided(x, size, stride, offset).shape != src.shape or x.dtype != src.dtype:
        raise Misfit
    own = geometry(x)
    return replaced(x, src, (size, stride, own[2] if offset is None else offset), own)


def replaced(x, src, window, own):
    """A copy of x in memory of its own, where x lies as `own` says, with `src` at a window."""
    memory = np.empty(extent(window, own), x.dtype)
    result = _window(memory, own)
    result[...] = x
    _window(memory, window)[...] = src
    return result


@compiled("by_memory")
def by_memory(x, source, target, shared):
    """x added up into memory as `source` lies there, read as `target` does; of `shared`, one of the
    two or None, the elements that are one in memory get equal parts."""
    put, taken = places(source), places(target)
    start = min(int(put.min(initial=0)), int(taken.min(initial=0)))
    put, taken = put - start, taken - start
    length = extent(source, target) - start
    if shared == source:
        x = x / _counts(put, length, x.dtype)
    memory = np.zeros(length, x.dtype)
    if len(np.unique(put)) == put.size:
        memory[put] = x
    else:
        np.add.at(memory, put, x)
    r = memory[taken]
    if shared == target != source and len(np.unique(taken)) != taken.size:
        r = r / _counts(taken, length, x.dtype)
    return r


def _counts(index, length, dtype):
    """How many elements lie where each one does."""
    return np.bincount(index.reshape(-1), minlength=length)[index].astype(dtype)
