"""Reductions and scans in NumPy: what runs without a compiler, and what the native ones must equal.

``k(x, axis=None, keepdims=False, …)``: `axis` is None, an integer or a tuple. The result is an
array always. Sums and products of integers are int64; float16 and bfloat16 are accumulated in
float32 and rounded once.
"""

import functools

import numpy as np

from flambeau.kernels._extension import Misfit
from flambeau.kernels._quiet import quiet
from flambeau.kernels.dtypes import (
    cast,
    compute_dtype,
    is_reduced,
    kind_of,
    no_kernel,
    real_dtype,
    silent_astype,
)
from flambeau.kernels.pointwise.elementary import logaddexp


def _reduction(body):
    """Silence, and an array in every case."""
    silent = quiet(body)

    @functools.wraps(body)
    def kernel(x, axis=None, keepdims=False, *more, **named):
        if not x.ndim:
            axis = None  # a number is one element in a row
        for name, value in named.items():  # dtype is the only one
            if name != "dtype":
                raise TypeError(f"{body.__name__}: unexpected argument {name!r}")
            more = (value,)
        return np.asarray(silent(x, axis, keepdims, *more))

    return kernel


def _accumulated(function, x, axis, keepdims, dtype):
    if dtype is None:
        dtype = np.dtype(np.int64) if kind_of(x.dtype) in "bi" else x.dtype
    dtype = np.dtype(dtype)
    if kind_of(dtype) in ("W", "8"):
        raise no_kernel("sum" if function is _add_reduce else "prod_out", dtype)
    compute = np.dtype(np.float32) if is_reduced(dtype) else dtype
    result = function(cast(x, compute) if x.dtype != compute else x, axis, keepdims, compute)
    return result if compute == dtype else silent_astype(np.asarray(result), dtype)


def _add_reduce(x, axis, keepdims, dtype):
    # NumPy adds in pairs along contiguous rows only; elsewhere rounding errors would pile up
    if dtype == np.float32 and x.ndim and not (x.flags.c_contiguous and _has_last(x, axis)):
        total = np.add.reduce(x, axis=axis, keepdims=keepdims, dtype=np.float64)
        return np.asarray(total).astype(dtype)
    return np.add.reduce(x, axis=axis, keepdims=keepdims, dtype=dtype)


def _has_last(x, axis):
    axes = axis if isinstance(axis, tuple) else (axis,)
    return axis is None or -1 in axes or x.ndim - 1 in axes


def _multiply_reduce(x, axis, keepdims, dtype):
    # NumPy multiplies along one axis at a time only
    return np.multiply.reduce(x, axis=axis, keepdims=keepdims, dtype=dtype)


@_reduction
def sum(x, axis=None, keepdims=False, dtype=None):
    """The sum, in `dtype` if that is given, to which `x` is converted first."""
    return _accumulated(_add_reduce, x, axis, keepdims, dtype)


@_reduction
def prod(x, axis=None, keepdims=False, dtype=None):
    """The product, in `dtype` if that is given, to which `x` is converted first."""
    return _accumulated(_multiply_reduce, x, axis, keepdims, dtype)


def _count(x, axis):
    if axis is None:
        return x.size
    axes = axis if isinstance(axis, tuple) else (axis,)
    return int(np.prod([x.shape[i] for i in axes], dtype=np.int64))


@_reduction
def mean(x, axis=None, keepdims=False, dtype=None):
    """The mean of floating or complex numbers; of none it is NaN."""
    dtype = np.dtype(dtype or x.dtype)
    compute = np.dtype(np.float32) if is_reduced(dtype) else dtype
    total = np.asarray(_accumulated(_add_reduce, x, axis, keepdims, compute))
    result = np.divide(total, real_dtype(compute).type(_count(x, axis)))
    return silent_astype(np.asarray(result), dtype)


def moments(x, axis=None, keepdims=False):
    """The mean, and the sum of the squared distances from it (real also for complex numbers)."""
    dtype = compute_dtype(x.dtype)
    mean_, squares = _moments(x if x.dtype == dtype else silent_astype(x, dtype), axis, keepdims)
    narrow = real_dtype(x.dtype)
    return silent_astype(np.asarray(mean_), x.dtype), silent_astype(np.asarray(squares), narrow)


@quiet
def _moments(x, axis, keepdims):
    middle = mean(x, axis, True)
    distance = x - middle
    if x.dtype.kind == "c":
        square = distance.real * distance.real + distance.imag * distance.imag
    else:
        square = distance * distance
    squares = np.add.reduce(square, axis=axis, keepdims=keepdims)
    if not keepdims:
        middle = middle.reshape(np.shape(squares))
    return middle, squares


def _widened(x):
    dtype = compute_dtype(x.dtype)
    return x if x.dtype == dtype else silent_astype(x, dtype)


@_reduction
def max(x, axis=None, keepdims=False):
    """The largest element; NaN if there is one."""
    result = np.maximum.reduce(_widened(x), axis=axis, keepdims=keepdims)
    return np.asarray(result).astype(x.dtype, copy=False)


@_reduction
def min(x, axis=None, keepdims=False):
    """The smallest element; NaN if there is one."""
    result = np.minimum.reduce(_widened(x), axis=axis, keepdims=keepdims)
    return np.asarray(result).astype(x.dtype, copy=False)


def _check_any(name, x, axis, error=RuntimeError, mark="()", empty=IndexError):
    """Raise unless there is an element to choose along each dimension."""
    if axis is None and not x.size:
        raise error(f"{name}(): Expected reduction dim to be specified for input.numel() == 0."
                    + " Specify the reduction dim with the 'dim' argument."
                    * (error is RuntimeError))
    for d in () if axis is None or not x.ndim else axis if isinstance(axis, tuple) else (axis,):
        if not x.shape[d]:
            raise empty(f"{name}{mark}: Expected reduction dim {d} to have non-zero size.")


@quiet
def amax(x, axis=None, keepdims=False):
    """The largest element of all, or along dimensions."""
    _check_any("amax", x, axis, empty=Misfit)
    return max(x, axis, keepdims)


@quiet
def amin(x, axis=None, keepdims=False):
    """The smallest element of all, or along dimensions."""
    _check_any("amin", x, axis, empty=Misfit)
    return min(x, axis, keepdims)


@quiet
def max_all(x):
    """The largest of all elements."""
    _check_any("max", x, None)
    return max(x)


@quiet
def min_all(x):
    """The smallest of all elements."""
    _check_any("min", x, None)
    return min(x)


@quiet
def aminmax(x, axis=None, keepdims=False):
    """The smallest and the largest element."""
    if axis is None and not x.size:
        raise RuntimeError("aminmax(): cannot compute aminmax over an empty dimension as the "
                           "operation has no identity.")
    _check_any("aminmax", x, axis, mark="")
    return min(x, axis, keepdims), max(x, axis, keepdims)


def _along(name, x, axis, keepdims, choose, place):
    _check_any(name, x, axis)
    if not x.ndim:
        return x.copy(), np.zeros((), np.int64)
    return (np.asarray(choose(x, axis, keepdims), order="C"),
            np.asarray(place(_widened(x), axis=axis, keepdims=keepdims), order="C"))


@quiet
def max_along(x, axis, keepdims=False):
    """The largest elements along one dimension, and their first places."""
    return _along("max", x, axis, keepdims, max, np.argmax)


@quiet
def min_along(x, axis, keepdims=False):
    """The smallest elements along one dimension, and their first places."""
    return _along("min", x, axis, keepdims, min, np.argmin)


def _place(name, x, axis, keepdims, place):
    _check_any(name, x, axis, IndexError)
    return place(_widened(x), axis=axis, keepdims=keepdims)


@_reduction
def argmax(x, axis=None, keepdims=False):
    """The place of the first largest element, or of the first NaN; int64."""
    return _place("argmax", x, axis, keepdims, np.argmax)


@_reduction
def argmin(x, axis=None, keepdims=False):
    """The place of the first smallest element, or of the first NaN; int64."""
    return _place("argmin", x, axis, keepdims, np.argmin)


def _truth(x, result):
    """Of bytes the truth is a byte too."""
    return result.astype(np.uint8) if x.dtype == np.uint8 else result


@_reduction
def any(x, axis=None, keepdims=False):
    """Whether any element differs from zero."""
    wide = _widened(x)
    return _truth(x, wide != 0 if axis == () else
                  np.logical_or.reduce(wide, axis=axis, keepdims=keepdims))


@_reduction
def all(x, axis=None, keepdims=False):
    """Whether all elements differ from zero."""
    wide = _widened(x)
    return _truth(x, wide != 0 if axis == () else
                  np.logical_and.reduce(wide, axis=axis, keepdims=keepdims))


@_reduction
def count_nonzero(x, axis=None, keepdims=False):
    """How many elements differ from zero."""
    return np.add.reduce(_widened(x) != 0, axis=axis, keepdims=keepdims, dtype=np.int64)


@_reduction
def nansum(x, axis=None, keepdims=False, dtype=None):
    """The sum of the elements that are not NaN, in `dtype` if that is given."""
    if x.dtype.kind in "cW":
        raise RuntimeError("nansum on CPU does not support complex inputs")
    return sum(np.where(x == x, x, np.zeros((), x.dtype)), axis, keepdims, dtype)


@quiet
def trace(x):
    """The sum of a matrix's diagonal."""
    if x.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {x.ndim}")
    return sum(np.diagonal(x))


def _check_scan(name, dtype):
    """Raise for a type that is asked for and that PyTorch's kernel is not compiled for."""
    if dtype is not None:
        dtype = np.dtype(dtype)
        if kind_of(dtype) in "bW8" or (dtype.kind == "u" and dtype.itemsize > 1):
            raise no_kernel(f"{name}_out", dtype)


def _scan(function, x, axis, dtype):
    def accumulate(x, axis, keepdims, dtype):
        if dtype.char in "fF" and not reduced:  # running totals in double, rounded for each result
            wide = np.float64 if dtype.char == "f" else np.complex128
            return function.accumulate(x, axis=axis, dtype=wide).astype(dtype)
        return function.accumulate(x, axis=axis, dtype=dtype)

    reduced = is_reduced(np.dtype(dtype or x.dtype))
    rows = x if x.ndim else x.reshape(1)
    return _accumulated(accumulate, rows, axis if x.ndim else 0, False, dtype).reshape(x.shape)


@quiet
def cumsum(x, axis, dtype=None):
    """The sums of the elements so far along one axis."""
    _check_scan("cumsum", dtype)
    return _scan(np.add, x, axis, dtype)


@quiet
def cumprod(x, axis, dtype=None):
    """The products of the elements so far along one axis."""
    _check_scan("cumprod", dtype)
    return _scan(np.multiply, x, axis, dtype)


def _cumulative_extreme(choose, x, axis):
    """The extreme so far and its place: of equal elements the last, and every NaN."""
    if not x.ndim:
        return x.copy(), np.zeros((), np.int64)
    wide = _widened(x)
    values = choose.accumulate(wide, axis=axis)
    shape = [1] * x.ndim
    shape[axis] = -1
    new = wide == values
    if kind_of(x.dtype) == "f":
        new = new | np.isnan(wide)
    places = np.where(new, np.arange(x.shape[axis]).reshape(shape), 0)
    return silent_astype(values, x.dtype), np.maximum.accumulate(places, axis=axis)


@quiet
def cummax(x, axis):
    """The largest of the elements so far along one axis, and its place."""
    return _cumulative_extreme(np.maximum, x, axis)


@quiet
def cummin(x, axis):
    """The smallest of the elements so far along one axis, and its place."""
    return _cumulative_extreme(np.minimum, x, axis)


@quiet
def logcumsumexp(x, axis):
    """log(sum(exp)) of the elements so far along one axis."""
    if not x.ndim:
        return x.copy()
    wide = _widened(x)
    if wide.dtype.kind == "c":
        result = np.moveaxis(wide.copy(), axis, 0)
        for i in range(1, len(result)):
            result[i] = logaddexp(result[i - 1], result[i])
        result = np.moveaxis(result, 0, axis)
    else:
        result = np.logaddexp.accumulate(wide, axis)
    return silent_astype(np.ascontiguousarray(result), x.dtype)


@_reduction
def logsumexp(x, axis=None, keepdims=False):
    """log(sum(exp(x))), shifted by the maximum so that it does not overflow."""
    wide = _widened(x)
    if _count(x, axis) == 0:
        peak = np.zeros((), wide.dtype)
    else:
        real = wide.real
        peak = np.maximum.reduce(real, axis=axis, keepdims=True)
        peak = np.where(np.isinf(peak), 0, peak).astype(real.dtype)
    total = np.add.reduce(np.exp(wide - peak), axis=axis, keepdims=keepdims)
    result = np.log(total) + (peak if keepdims else np.reshape(peak, np.shape(total) or ())
                              if peak.ndim else peak)
    return np.asarray(result).astype(x.dtype, copy=False)


REDUCTIONS = ("sum", "prod", "mean", "moments", "max", "min", "amax", "amin", "max_all", "min_all",
              "aminmax", "max_along", "min_along", "argmax", "argmin", "any", "all",
              "count_nonzero", "nansum", "trace", "cumsum", "cumprod", "cummax", "cummin",
              "logsumexp", "logcumsumexp")
