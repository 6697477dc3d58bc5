"""Images whose channels lie last in memory: kernels that give such images for such images."""

from functools import wraps

import numpy as np

from flambeau.kernels._extension import compiled
from flambeau.kernels.dtypes import cast
from flambeau.kernels.moving import views as kernels

_CHANNELS_LAST = {4: (0, 2, 3, 1), 5: (0, 2, 3, 4, 1)}
_RANKS = {"channels_last": 4, "channels_last_3d": 5}
_BACK = {n: tuple(np.argsort(axes)) for n, axes in _CHANNELS_LAST.items()}


def has_channels_last(x):
    """Do the strides of an image or a volume (n, c, …) say that its channels lie last?

    Extents of 1 leave strides undecided; then their strides are looked at all the same, and what
    both orders would have counts as row-major.

    >>> x = np.zeros((2, 4, 4, 3)).transpose(0, 3, 1, 2)
    >>> has_channels_last(x), has_channels_last(x.copy())
    (True, False)
    """
    if x.ndim not in _CHANNELS_LAST or (x.flags.c_contiguous and 1 not in x.shape):
        return False
    if x.strides[1] == 0:                   # an expanded channel lies nowhere
        return False
    least = 0
    for axis in reversed(_CHANNELS_LAST[x.ndim]):
        if x.shape[axis] == 0 or x.strides[axis] < least:
            return False
        if axis == 0 and least == x.strides[1]:
            return False
        least = x.strides[axis] * max(x.shape[axis], 1)
    return True


def check_rank(ndim, memory_format):
    """Raise if a memory format is for tensors of another rank."""
    rank = _RANKS.get(memory_format.name, ndim)
    if rank != ndim:
        raise RuntimeError(f"required rank {rank} tensor to use {memory_format.name} format")


def channels_last_strides(shape):
    """The strides, in elements, of an image or a volume with the channels last."""
    strides, step = [0] * len(shape), 1
    for axis in reversed(_CHANNELS_LAST[len(shape)]):
        strides[axis], step = step, step * shape[axis]
    return tuple(strides)


def convolves_channels_last(x):
    """May convolutions of such elements have their channels last? Those of volumes in single
    precision alone."""
    return x.ndim == 4 or x.dtype.char in "fF"


def channels_last(x):
    """The values of `x`, laid out with the channels last, if it is an image or a volume."""
    if type(x) is not np.ndarray or x.ndim not in _CHANNELS_LAST:
        return x
    result = kernels.empty_in_order(x.shape, x.dtype, _CHANNELS_LAST[x.ndim])
    kernels.copy_into(result, x)
    return result


def to_copy(x, dtype, memory_format):
    """Another array with the values of x, of type `dtype` if one is given, laid out as a memory
    format says, or with strides (a tuple, in elements); None: as x is."""
    if dtype is not None and dtype != x.dtype:
        values = np.asarray(cast(x, dtype))
        if memory_format is not None and memory_format.name != "preserve_format":
            return clone(values, memory_format)
        if kernels.is_row_major(x):
            return values
        result = kernels.empty_like(x, dtype)
        kernels.copy_into(result, values)
        return result
    return clone(x, memory_format)


@compiled("clone")
def clone(x, memory_format):
    """A copy of x, laid out so: see `to_copy`."""
    if type(memory_format) is tuple:
        steps = tuple([s * x.itemsize for s in memory_format])
        length = 1 + sum((n - 1) * s for n, s in zip(x.shape, memory_format)) if x.size else 0
        r = np.ndarray(x.shape, x.dtype, np.zeros(length, x.dtype), 0, steps)
        r[...] = x
        return r
    if memory_format is None or memory_format.name == "preserve_format":
        return kernels.copy(x)
    if memory_format.name == "contiguous_format":
        return kernels.contiguous(x)
    check_rank(x.ndim, memory_format)
    return channels_last(x)


def preserve_channels_last(kernel, of=0):
    """The kernel, which gives images with the channels last if its first argument, or number `of`,
    is one."""
    @wraps(kernel)
    def run(*args):
        result = kernel(*args)
        if not has_channels_last(args[of]):
            return result
        if type(result) is tuple:
            return tuple([channels_last(r) for r in result])
        return channels_last(result)
    return run
