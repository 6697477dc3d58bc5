"""Variances and norms in NumPy: what runs without a compiler, and what the native ones must equal.

``k(x, axis, correction, keepdims)``: `axis` is None, an integer or a tuple; half types are computed
in float32 and rounded once.
"""

import functools
import math
import warnings

import numpy as np

from flambeau.kernels._extension import Misfit
from flambeau.kernels._quiet import quiet
from flambeau.kernels.dtypes import cast, compute_dtype, real_dtype, type_title
from flambeau.kernels.moving.views import part
from flambeau.kernels.reduction import reductions


def count(x, axis):
    """How many elements a reduction combines into one."""
    if axis is None or not x.ndim:
        return x.size
    return math.prod(x.shape[d] for d in (axis if isinstance(axis, tuple) else (axis,)))


# ---- variances ----------------------------------------------------------------------------------


def _declare_kernel(root, with_mean):
    """Declare the kernel of that name: variance or its root, with the mean or without."""

    def declare(twin):
        @functools.wraps(twin)
        def kernel(x, axis, correction, keepdims):
            _check_spread(twin.__name__, x, axis, correction)
            wide = cast(x, np.float32) if x.dtype.itemsize == 2 else x
            found, middle = _moments(wide, axis, 1 if correction is None else correction, keepdims)
            found = quiet(np.sqrt)(found) if root else found
            found, middle = cast(found, real_dtype(x.dtype)), cast(middle, x.dtype)
            return (found, middle) if with_mean else found

        return kernel

    return declare


def _check_spread(name, x, axis, correction):
    if count(x, axis) <= (1 if correction is None else correction):
        warnings.warn(f"{name}(): degrees of freedom is <= 0. Correction should be strictly "
                      "less than the reduction factor (input numel divided by output numel).",
                      UserWarning, stacklevel=3)


def updated_mean(x, axis, mean):
    """Means that every element updates: an infinite one stays if it is the last, and the only one;
    what comes after it makes inf - inf."""
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    wrong = ~np.isfinite(x)
    last = tuple([slice(-1, None) if d in axes else slice(None) for d in range(x.ndim)])
    alone = wrong.sum(axis=tuple(axes) or None, keepdims=True) == wrong[last]
    return np.where(np.isinf(mean) & ~alone.reshape(np.shape(mean)), np.nan, mean).astype(
        mean.dtype)


def _moments(x, axis, correction, keepdims):
    if x.dtype.kind == "W":  # the parts each round
        parts = [part(x, "real"), part(x, "imag")]
        (a, re), (b, im) = [
            [cast(found, p.dtype)
             for found in _moments(cast(p, np.float32), axis, correction, keepdims)]
            for p in parts]
        middle = cast(re, np.float32) + 1j * cast(im, np.float32)
        return a + b, cast(np.asarray(middle, np.complex64), x.dtype)
    middle, squares = reductions.moments(x, axis if x.ndim else None, keepdims)
    free = count(x, axis) - correction
    return quiet(np.divide)(squares, squares.dtype.type(max(free, 0))), middle


@_declare_kernel(root=False, with_mean=False)
def var(x, axis, correction, keepdims):
    """The sum of the squared distances from the mean over n - correction (1 if that is None)."""


@_declare_kernel(root=True, with_mean=False)
def std(x, axis, correction, keepdims):
    """The root of the variance."""


@_declare_kernel(root=False, with_mean=True)
def var_mean(x, axis, correction, keepdims):
    """The variance and the mean."""


@_declare_kernel(root=True, with_mean=True)
def std_mean(x, axis, correction, keepdims):
    """The root of the variance, and the mean."""


# ---- norms --------------------------------------------------------------------------------------


@quiet
def vector_norm(x, ord, axis, keepdims, dtype):
    """(Σ |x|^ord)^(1/ord) in the real type that belongs to `dtype`, or to x."""
    x = _normed(x, ord, axis, dtype)
    wide = compute_dtype(x.dtype)
    found = _norm(x if wide == x.dtype else cast(x, wide), float(ord), axis if x.ndim else None,
                  keepdims)
    return cast(np.asarray(found), real_dtype(x.dtype))


def check_norm_type(found, dtype, name):
    """Raise unless elements of the type `found` may become another one for their norm."""
    said = f"but got {type_title(dtype)}"
    if dtype.kind not in "fcVW":
        raise RuntimeError(f"{name}: dtype should be floating point or complex, {said}")
    kind = "complex" if found.kind in "cW" else "real"
    if (kind == "complex") != (dtype.kind in "cW"):
        raise RuntimeError(f"{name}: dtype should be {kind} for {kind} inputs, {said}")
    if dtype.itemsize <= found.itemsize:
        raise RuntimeError(f"{name}: the dtype of the input ({type_title(found)}) should be "
                           "convertible without narrowing to the specified dtype "
                           f"({type_title(dtype)})")


def _normed(x, ord, axis, dtype):
    """The elements that a norm is of."""
    if x.dtype.kind not in "fcVW":
        raise RuntimeError("linalg.vector_norm: Expected a floating point or complex tensor as "
                           f"input. Got {type_title(x.dtype)}")
    if dtype is not None and dtype != x.dtype:
        check_norm_type(x.dtype, dtype, "linalg.vector_norm")
        x = cast(x, dtype)
    if isinstance(ord, complex):
        raise RuntimeError("linalg.vector_norm: Expected a non-complex scalar as the order of "
                           "norm.")
    if (ord < 0 or math.isinf(ord)) and not count(x, axis):
        error = Misfit if axis else RuntimeError
        raise error(f"linalg.vector_norm cannot compute the {ord} norm on an empty tensor "
                    "because the operation does not have an identity")
    return x


def _norm(x, ord, axis, keepdims):
    size = np.abs(x) if ord != 2 or x.dtype.kind == "c" else x
    if ord == 2:
        return np.sqrt(reductions.sum(np.square(size), axis, keepdims))
    if ord == 0:
        return reductions.sum((size != 0).astype(size.dtype), axis, keepdims)
    if ord == 1:
        return reductions.sum(size, axis, keepdims)
    if math.isinf(ord):
        return (reductions.max if ord > 0 else reductions.min)(size, axis, keepdims)
    return np.power(reductions.sum(np.power(size, ord), axis, keepdims), 1 / ord)


STATISTICS = ("var", "std", "var_mean", "std_mean", "vector_norm")
