"""Views of arrays: the same memory with another shape, strides and offset."""

import sys

import numpy as np

from flambeau.kernels._extension import compiled
from flambeau.kernels._extension import native as _native


def strided(x, shape, strides, offset):
    """A view with these extents and strides (in bytes), `offset` bytes from x's first element."""
    root = x
    while isinstance(root.base, np.ndarray):
        root = root.base
    if not root.flags.c_contiguous:         # a buffer must be: its dimensions as memory has them
        root = root.transpose(sorted(range(root.ndim), key=lambda d: -root.strides[d]))
    at = x.__array_interface__["data"][0] - root.__array_interface__["data"][0] + offset
    if 0 in shape:                          # nothing of what lies there is looked at
        at = min(max(at, 0), root.nbytes)
    return np.ndarray(shape, x.dtype, root, at, strides)


def settled(x):
    """x, or a view of it: NumPy gives its own empty arrays zeros for all strides; such an array, or
    NumPy's view of one, with those that PyTorch counts, which views keep."""
    if x.size or any(x.strides) or not x.ndim:
        return x
    root = x
    while isinstance(root.base, np.ndarray):
        root = root.base
        if root.size or any(root.strides):  # x is expanded
            return x
    return strided(x, x.shape, tuple([s * x.itemsize for s in contiguous_strides(x.shape)]), 0)


_HALVES = np.dtype([("real", "e"), ("imag", "e")])


def part(x, name):
    """A view of the parts of complex numbers: "real" or "imag"; NumPy cannot take complex32's."""
    x = settled(x)
    return x.view(_HALVES)[name] if x.dtype.kind == "W" else getattr(x, name)


def expand(x, shape):
    """x with dimensions of extent 1, or missing in front, repeated to `shape` with stride 0."""
    extra = len(shape) - x.ndim
    if extra < 0 or any(m not in (1, n) for m, n in zip(x.shape, shape[extra:])):
        raise ValueError("the shape cannot be expanded to this one")
    x = settled(x)
    strides = (0,) * extra + tuple(
        0 if m != n else s for m, n, s in zip(x.shape, shape[extra:], x.strides))
    return strided(x, shape, strides, 0)


def select(x, dim, index):
    """The slice of x at `index` along `dim`."""
    if not -x.shape[dim] <= index < x.shape[dim]:
        if not -sys.maxsize <= index + 1 <= sys.maxsize + 1:
            raise OverflowError("Python int too large to convert to C ssize_t")
        raise IndexError(f"index {index} is out of bounds for dimension {dim} with size "
                         f"{x.shape[dim]}")
    return settled(x)[(slice(None),) * dim + (index, ...)]


def unsqueeze(x, dim):
    """x with another dimension, of extent 1."""
    return expand_dims(settled(x), dim)


def permute(x, dims):
    """x with its dimensions in another order."""
    return settled(x).transpose(dims)


def transpose(x, dim0, dim1):
    """x with two of its dimensions exchanged."""
    return settled(x).swapaxes(dim0, dim1) if x.ndim else x[...]


def reshape(x, shape):
    """The same elements in another shape on the same memory; None where that needs a copy."""
    r = x.reshape(shape)
    if r.shape == x.shape:
        return settled(x)[...]
    return r if not x.size or np.may_share_memory(r, x) else None


@compiled("squeeze")
def squeeze(x, dim):
    """x without dimensions of extent 1: all, or those that `dim`, a number or a tuple, names."""
    named = range(x.ndim) if dim is None else (dim,) if isinstance(dim, int) else dim
    return settled(x).squeeze(tuple([d for d in named if x.ndim and x.shape[d] == 1]))


@compiled("t")
def t(x):
    """The transpose of a matrix; others as they are."""
    return settled(x).T if x.ndim == 2 else x[...]


@compiled("slices")
def slices(x, dim, start, length):
    """`length` slices of x along `dim`, from `start` on."""
    x = settled(x)
    return strided(x, (*x.shape[:dim], length, *x.shape[dim + 1:]), x.strides,
                   (start % x.shape[dim] if start < 0 else start) * x.strides[dim])


@compiled("split")
def split(x, size, dim):
    """x in parts of `size` slices along `dim`, the last of what is left."""
    n = x.shape[dim]
    count = max((n + size - 1) // size, 1) if size else 1
    return [slices(x, dim, i * size, min(size, n - i * size)) for i in range(count)]


@compiled("split_with_sizes")
def split_with_sizes(x, sizes, dim):
    """x in parts of these extents along `dim`."""
    return [slices(x, dim, sum(sizes[:i]), n) for i, n in enumerate(sizes)]


@compiled("unbind")
def unbind(x, dim):
    """All slices of x along `dim`."""
    return [select(x, dim, i) for i in range(x.shape[dim])]


@compiled("diagonal")
def diagonal(x, offset, dim1, dim2):
    """The diagonal of two dimensions as a last one."""
    x = settled(x)
    r = np.diagonal(x, offset, dim1, dim2)
    skipped = offset * x.strides[dim2] if offset >= 0 else -offset * x.strides[dim1]
    return strided(x, r.shape, r.strides, skipped if r.shape[-1] else 0)


@compiled("windows")
def windows(x, dim, size, step):
    """All windows of `size` slices along a dimension, `step` apart, with one more dimension."""
    if not x.ndim:
        return strided(x, (size,), (x.itemsize,), 0)
    x = settled(x)
    n = (x.shape[dim] - size) // step + 1
    return strided(x, (*x.shape[:dim], n, *x.shape[dim + 1:], size),
                   (*x.strides[:dim], x.strides[dim] * step, *x.strides[dim + 1:],
                    x.strides[dim]), 0)


def buffer(x):
    """The memory that x looks at, in one row, and how many bytes into it x starts."""
    start, item = array_offset(x), x.itemsize
    return strided(x, (array_root(x).nbytes // item,), (item,), -start), start


@compiled("view")
def view(x, size):
    """x in another shape on the same memory; RuntimeError where that needs a copy."""
    r = reshape(x, size)
    if r is None:
        raise RuntimeError("view size is not compatible with input tensor's size and stride (at "
                           "least one dimension spans across two contiguous subspaces). Use "
                           ".reshape(...) instead.")
    return r


@compiled("slice")
def slice_(x, dim, start, end, step):
    """Every `step`-th slice of x along `dim`, from `start` to before `end`."""
    x = settled(x)
    first, stop, step = slice(start, end, step).indices(x.shape[dim])
    strides = (*x.strides[:dim], x.strides[dim] * step, *x.strides[dim + 1:])
    return strided(x, (*x.shape[:dim], len(range(first, stop, step)), *x.shape[dim + 1:]), strides,
                   first * x.strides[dim])


def memory_order(x):
    """The dimensions of x from the outermost in memory to the innermost; an expanded one keeps the
    place that its number gives it."""
    return broadcast_memory_order(x.shape, x.strides)


def broadcast_memory_order(shape, *operands):
    """The order in memory of a result of operands that broadcast to `shape`, given the strides of
    each: by those of the first operand that is expanded in neither of two dimensions."""
    order = list(range(len(shape)))[::-1]           # the innermost first
    for i in range(1, len(order)):
        at = i
        for j in range(i - 1, -1, -1):
            inner, outer = order[j], order[at]
            found = 0
            for strides in operands:
                a, b = strides[inner], strides[outer]
                if a and b:
                    found = a - b or max(shape[inner] - shape[outer], 0)
                    if found:
                        break
            if found < 0:
                break
            if found:
                order[j], order[at] = outer, inner
                at = j
    return order[::-1]


def arranged(x, order):
    """x, or a copy, with its dimensions in memory in this order."""
    if not x.size:
        return empty_in_order(x.shape, x.dtype, order)
    size = x.itemsize
    for d in reversed(order):
        if x.shape[d] > 1 and x.strides[d] != size:
            break
        size *= x.shape[d]
    else:
        return x
    result = empty_in_order(x.shape, x.dtype, order)
    copy_into(result, x)
    return result


def empty_in_order(shape, dtype, order):
    """An uninitialised array with its dimensions in memory in this order."""
    made = np.empty([shape[d] for d in order], dtype)
    if made.size or list(order) == sorted(order):
        return in_order(made, order)
    strides, step = [0] * len(shape), made.itemsize
    for d in reversed(order):           # by 0 too: no stride of an empty array says more
        strides[d], step = step, step * shape[d]
    return np.ndarray(shape, dtype, made, 0, strides)


def in_order(x, order):
    """x with dimension i of it at place order[i]."""
    return x.transpose(sorted(range(x.ndim), key=order.__getitem__))


def permute_memory_like(x, values):
    """`values` with their dimensions in memory in the order of x's."""
    r = empty_like(x, values.dtype)
    r[...] = values
    return r


def is_row_major(x):
    """Has x the strides of a new array? Also where it has one element along a dimension, of which
    strides say nothing that matters but to who asks for them."""
    return x.flags.c_contiguous and (not (1 in x.shape or 0 in x.shape) or settled(
        x).strides == tuple([s * x.itemsize for s in contiguous_strides(x.shape)]))


def is_dense(x):
    """Do the elements fill their memory without overlap or gaps, in some order of dimensions?"""
    if x.flags.c_contiguous or x.flags.f_contiguous:
        return True
    expected = x.itemsize
    for stride, n in sorted(zip(x.strides, x.shape)):
        if n == 1:
            continue
        if stride != expected:
            return False
        expected *= n
    return True


def empty_like(x, dtype=None):
    """An uninitialised array with x's shape and strides; where these leave gaps or let elements
    overlap, with its dimensions in memory in the order of x's."""
    dtype = x.dtype if dtype is None else np.dtype(dtype)
    if is_row_major(x):
        return np.empty(x.shape, dtype)
    if is_dense(x):
        return laid_out_like(x, np.empty(x.size, dtype))
    return empty_in_order(x.shape, dtype, memory_order(x))


def laid_out_like(x, elements):
    """As many elements as x has, in one dimension, seen with the shape and strides of x."""
    size = elements.itemsize
    strides = tuple([s // x.itemsize * size for s in settled(x).strides])
    return np.ndarray(x.shape, elements.dtype, elements, 0, strides)


def full_like(x, value):
    """An array like x with `value` in every element."""
    result = empty_like(x)
    result.fill(value)
    return result


def contiguous(x):
    """A copy of x in row-major order."""
    return x.copy()


ALL = (slice(None),) * 64


def expand_dims(x, dim):
    """A view of `x` with one more dimension, of one element; `np.expand_dims` checks more."""
    return x[(*ALL[:dim], None)]


def stepping(shape, strides):
    """Strides as PyTorch counts them: those of one element step over the dimensions after them,
    where NumPy has 0."""
    if 0 not in strides:
        return strides
    found, after = list(strides), 1
    for d in range(len(shape) - 1, -1, -1):
        if shape[d] == 1 and not found[d]:
            found[d] = after
        after = shape[d] * found[d]
    return tuple(found)


def contiguous_strides(shape):
    """Row-major strides, in elements, as PyTorch counts them (an extent of 0 counts as 1).

    >>> contiguous_strides((2, 3, 4))
    (12, 4, 1)
    """
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= n or 1
    return tuple(reversed(strides))


def array_strides(array):
    """Strides in elements, as torch counts them."""
    size = array.itemsize
    strides = array.strides if array.size else settled(array).strides
    return stepping(array.shape, tuple([s // size for s in strides]))


def array_root(array):
    """The array that owns the memory that `array` looks at."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def array_offset(array):
    """Bytes between the start of the memory and the first element."""
    root = array_root(array)
    if root is array:
        return 0
    return (array.__array_interface__["data"][0] - root.__array_interface__["data"][0])


def copy_in_place(array):
    """A copy that lies in its memory as `array` in its own: at that offset, with those strides,
    unless several of its elements are one."""
    if has_internal_overlap(array):
        return np.array(array, order="C")
    start, strides = array_offset(array), [s * array.itemsize for s in array_strides(array)]
    reach = sum((n - 1) * s for n, s in zip(array.shape, strides)) + array.itemsize
    memory = np.empty((start + reach) // array.itemsize if array.size else 0, array.dtype)
    result = np.ndarray(array.shape, array.dtype, memory, start if array.size else 0, strides)
    copy_into(result, array)
    return result


def has_internal_overlap(array):
    """Are several elements one in memory, as those of expanded tensors are?"""
    return 0 in array.strides and any(
        s == 0 and n > 1 for s, n in zip(array.strides, array.shape))


def copy_into(target, x):
    """Write x, broadcast, into an array of its dtype."""
    target[...] = x


def join(arrays, axis):
    """A list of arrays, joined along an axis; None where `np.concatenate` is as good."""


def copy(x):
    """A copy of x, its dimensions in memory in the order of x's."""
    if is_row_major(x):
        return x.copy()
    result = empty_like(x)
    copy_into(result, x)
    return result


if _native is not None:
    strided, expand = _native.view_strided, _native.view_expand
    select, reshape = _native.view_select, _native.view_reshape
    unsqueeze, permute = _native.view_unsqueeze, _native.view_permute
    transpose = _native.view_transpose
    contiguous, copy_into = _native.copy_contiguous, _native.copy_into
    join = _native.join
