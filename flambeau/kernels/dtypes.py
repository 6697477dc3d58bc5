"""Element types as kernels in NumPy know them: kinds, what is computed in which, conversion.

float16 and bfloat16 are computed in float32, complex32 in complex64, and rounded once.
"""
import functools
import math

import numpy as np

from flambeau.kernels import _extension
from flambeau.kernels._quiet import quiet
from flambeau.kernels.moving.views import permute_memory_like

SCALARS = (bool, int, float, complex)
KINDS = {"b": "b", "i": "i", "u": "i", "f": "f", "V": "f", "c": "c", "W": "W"}
# ml_dtypes' floats are "V" and its complex32 "W", for which PyTorch has few kernels


def is_reduced(dtype):
    """Whether arithmetic on `dtype` is done in float32: float16 and the types of ml_dtypes."""
    return dtype.char == "e" or (dtype.kind in "Vf" and dtype.isbuiltin == 2)


def kind_of(dtype):
    """``b``, ``i``, ``f``, ``8`` for float8, ``c``, ``W`` for complex32; None for no number."""
    if dtype.isbuiltin == 2 and dtype.itemsize == 1:
        return "8"
    return KINDS.get(dtype.kind, "f" if dtype.isbuiltin == 2 else None)


def compute_dtype(dtype):
    """What arithmetic on `dtype` is done in: a wider type for narrow ones."""
    if dtype.kind == "W":
        return np.dtype(np.complex64)
    return np.dtype(np.float32) if is_reduced(dtype) else dtype


def real_dtype(dtype):
    """The dtype of the parts of a complex `dtype`; others are returned as they are."""
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind in "cW" else dtype


def as_dtype(value, dtype):
    """A Python number as an array of `dtype`, wrapped around as C does where it does not fit."""
    if dtype.kind in "iu" and isinstance(value, (int, float)):
        if isinstance(value, float):
            value = int(value) if math.isfinite(value) else 0
        return np.asarray(value & (256**dtype.itemsize - 1), f"u{dtype.itemsize}").view(dtype)
    return np.asarray(value).astype(dtype)


def round_once(kernel):
    """A kernel of two operands that also takes a number in float32 beside a half type's array."""

    @functools.wraps(kernel, ("__doc__",), ())
    def run(x, y, *out):
        if x.dtype == y.dtype:
            return kernel(x, y, *out)
        if not y.ndim and y.dtype == np.float32:
            return kernel(x, y.item(), *out)
        half = x.dtype if y.dtype == np.float32 else y.dtype
        return float_astype(kernel(*(float_astype(a, np.float32) for a in (x, y)), *out), half)

    return run


# What messages call dtypes, where that is not their name in capitals.
TYPE_NAMES = {
    "float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16",
    "int64": "Long", "int32": "Int", "int16": "Short", "int8": "Char", "uint8": "Byte",
    "bool": "Bool", "complex64": "ComplexFloat", "complex128": "ComplexDouble",
    "complex32": "ComplexHalf", "quint8": "QUInt8", "qint8": "QInt8", "qint32": "QInt32",
    "quint4x2": "QUInt4x2", "quint2x4": "QUInt2x4",
}


def type_title(dtype):
    """What messages call a dtype, of NumPy or of torch."""
    name = dtype.name
    return TYPE_NAMES.get(name) or name.replace("uint", "UInt").replace("float", "Float")


class NoKernel(TypeError, NotImplementedError):
    """There is no kernel for a dtype: callers know it as a TypeError, users as torch's error."""


NoKernel.__name__ = NoKernel.__qualname__ = "NotImplementedError"  # in tracebacks
NoKernel.__module__ = "builtins"


def no_kernel(name, dtype):
    """What to raise where the kernel of that name does not take a dtype."""
    return NoKernel(f"\"{name}_cpu\" not implemented for '{type_title(dtype)}'")


silent_astype = quiet(lambda x, dtype: x.astype(dtype))

_cast_native = getattr(_extension.native, "cast", None)


def float_astype(x, dtype):
    """``x.astype(dtype)`` between float32 and a half type, whose loops in NumPy are slow."""
    if _cast_native is not None and type(x) is np.ndarray:
        result = _cast_native(x, dtype)
        if result is not NotImplemented:
            return result
    return x.astype(dtype)


def check_divisor(x):
    """Raise what an integer division by zero raises, if `x` holds a zero."""
    if x.dtype.kind in "iu" and not np.all(x):
        raise RuntimeError("ZeroDivisionError")


# ---- conversion ---------------------------------------------------------------------------------


def cast(x, dtype, out=None):
    """`x` converted as C does: towards zero, without a warning; a complex number loses its
    imaginary part; whatever is not zero is True. Out of range gives the least integer of the
    intermediate type: int32 for narrow targets, else int64."""
    dtype = np.dtype(dtype)
    result = np.asarray(_cast(np.asarray(x), dtype))
    if out is None:
        if result.ndim < 2 or x.flags.c_contiguous:
            return result
        return permute_memory_like(x, result)
    np.copyto(out, result, "unsafe")
    return out


@quiet
def _cast(x, dtype):
    if dtype.kind == "b":
        return x != 0
    if x.dtype.kind == "W":
        x = x.astype(np.complex64)
    if x.dtype.kind == "c" and dtype.kind not in "cW":
        x = x.real
    if is_reduced(x.dtype):
        x = x.astype(np.float32)
    if x.dtype.kind == "f" and dtype.kind in "iu":
        return _to_integer(x, dtype)
    if kind_of(dtype) == "8":
        x = x.astype(np.float32)
        if dtype.name == "float8_e4m3fn":  # saturates, as do no others
            x = np.clip(x, -448, 448)
        elif dtype.name == "float8_e8m0fnu":  # has powers of two only: no sign, no zero
            x = np.maximum(np.abs(x), np.float32(2.0**-127))
    elif is_reduced(dtype) and x.dtype.kind not in "fc":
        x = x.astype(np.float32)
    return x.astype(dtype)


def _to_integer(x, dtype):
    if dtype == np.uint64:
        high = (x >= 2.0**63) & (x < 2.0**64)
        low = _to_integer(np.where(high, x - x.dtype.type(2.0**63), x), np.dtype(np.int64))
        return low.view(np.uint64) ^ (high.astype(np.uint64) << np.uint64(63))
    wide = dtype == np.uint32 or dtype.itemsize == 8
    middle = np.dtype(np.int64 if wide else np.int32)
    limit = x.dtype.type(2.0 ** (8 * middle.itemsize - 1))
    inside = (x >= -limit) & (x < limit)
    whole = np.where(inside, x, x.dtype.type(0)).astype(middle)
    return np.where(inside, whole, np.iinfo(middle).min).astype(dtype)
