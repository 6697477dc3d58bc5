"""Which type a mixed expression has: torch's rules, which are not NumPy's.

Operands rank in three tiers: tensors with dimensions, 0-d tensors, Python numbers. A lower tier
changes the result's type only if its *category* (bool < integer < floating < complex) is higher
than that of every tier above it; within a tier, types are joined on the lattice below.

    >>> import flambeau
    >>> (flambeau.ones(2, dtype=flambeau.float16) + 1.5).dtype
    torch.float16
    >>> (flambeau.ones(2, dtype=flambeau.int64) + 1.5).dtype
    torch.float32
"""
from __future__ import annotations

from functools import wraps
from typing import Any

import numpy as np

from flambeau.core import dtypes
from flambeau.core.dtypes import dtype, from_numpy_dtype
from flambeau.kernels.dtypes import type_title as type_name

SCALARS = frozenset({float, int, bool, complex})
CATEGORY = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
UNSIGNED = frozenset({dtypes.uint16, dtypes.uint32, dtypes.uint64})     # join floating types only

# The types that had names such as `torch.FloatTensor` before there were dtypes.
_HISTORICAL = frozenset(("Byte", "Char", "Double", "Float", "Half", "Int", "Long", "Short"))


def type_label(d: dtype, meta: bool = False) -> str:
    """A type of tensors as PyTorch's errors have it: by its historical name, if it has one.

    >>> import flambeau
    >>> type_label(flambeau.float32), type_label(flambeau.bfloat16)
    ('torch.FloatTensor', 'CPUBFloat16Type')
    """
    name = type_name(d)
    return f"torch.{name}Tensor" if name in _HISTORICAL and not meta else \
        f"{'Meta' if meta else 'CPU'}{name}Type"


def category(d: dtype) -> int:
    """0 bool, 1 integer, 2 floating, 3 complex."""
    return CATEGORY[d.kind]


def quantized_promotion(a: dtype, b: dtype) -> RuntimeError:
    """Quantised elements become nothing else together with others."""
    return RuntimeError("promoteTypes with quantized numbers is not handled yet; figure out what "
                        f"the correct rules should be, offending types: {type_name(a)} "
                        f"{type_name(b)}")


def join(a: dtype, b: dtype) -> dtype:
    """The smallest type that torch lets values of both types become.

    >>> join(dtypes.uint8, dtypes.int8)
    torch.int16
    """
    if a is b:
        return a
    if "quantized" in (a.kind, b.kind):
        raise quantized_promotion(a, b)
    refused = "Float8 Types" if is_float8(a) or is_float8(b) else "uint16, uint32, uint64 types" \
        if (a in UNSIGNED or b in UNSIGNED) and "f" not in (a.kind, b.kind) else ""
    if refused:
        raise RuntimeError(f"Promotion for {refused} is not supported, attempted to promote "
                           f"{type_name(a)} and {type_name(b)}")
    if category(a) > category(b):
        a, b = b, a
    # b has the higher (or an equal) category
    if a.kind == "b":
        return b
    if category(b) == 1:
        return _join_integers(a, b)
    if category(a) == 1:
        return b
    if b.kind == "c" and a.kind == "c":
        return dtypes.complex128 if dtypes.complex128 in (a, b) else dtypes.complex64
    if b.kind == "c":
        return join(b, a.to_complex())
    if a.itemsize == b.itemsize:            # float16 with bfloat16
        return dtypes.float32
    return a if a.itemsize > b.itemsize else b


def is_float8(d: dtype) -> bool:
    return d.kind == "f" and d.itemsize == 1


def _join_integers(a: dtype, b: dtype) -> dtype:
    if a.kind == b.kind:
        return a if a.itemsize > b.itemsize else b
    signed = b if a.kind == "u" else a
    return dtypes.int16 if signed.itemsize == 1 else signed


def scalar_type(value: Any) -> dtype:
    """The type that a Python number stands for before promotion."""
    if isinstance(value, bool):
        return dtypes.bool_
    if isinstance(value, int):
        return dtypes.int64
    if isinstance(value, float):
        return dtypes._Defaults.float
    return dtypes._Defaults.float.to_complex()


def number_of(value: np.generic) -> Any:
    """The Python number for one of NumPy: a float for those that are no kind of Python's, which
    `np.bool_` and `np.complex64` are not."""
    if isinstance(value, (np.bool_, np.complex64)):
        return float(value.real)
    return value.item()


def result_type(arrays: list[np.ndarray], numbers: Any = ()) -> dtype:
    """The type of an expression over arrays (with and without dimensions) and Python numbers."""
    tiers: list[dtype | None] = [None, None, None]
    for array in arrays:
        tier = 1 if array.ndim == 0 else 0
        d, old = from_numpy_dtype(array.dtype), tiers[tier]
        tiers[tier] = d if old is None else join(old, d)
    for number in numbers:
        d, old = scalar_type(number), tiers[2]
        tiers[2] = d if old is None else join(old, d)
    result: dtype | None = None
    for d in tiers:
        if d is None:
            continue
        if result is None:
            result = d
        elif category(d) > category(result):
            if d.kind == "c" and result.kind == "f":    # the width comes from above
                result = result.to_complex()
            else:
                result = d if d.kind == "c" else join(result, d)
    return result


def promote(x: np.ndarray, y: np.ndarray, wide: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Both arrays in the type of an expression over them; see `scalar_operand` for `wide`."""
    target = result_type([x, y]).numpy
    wide = wide and x.ndim > y.ndim == 0 and is_half(target)
    return convert(x, target), convert(y, dtypes.float32.numpy if wide else target)


def is_half(d: np.dtype) -> bool:
    """float16 or bfloat16?"""
    return d.itemsize == 2 and d in dtypes.FLOATING


def convert(x: np.ndarray, target: np.dtype | type[np.generic]) -> np.ndarray:
    """`x` as `target`, as C converts numbers: no warning, no rounding, complex drops its imaginary
    part, and what is not zero is True. `x` itself if it has that type."""
    if x.dtype == target:
        return x
    from flambeau import kernels
    return np.asarray(kernels.cast(x, target))


# Python numbers as 0-d arrays of a floating type: NumPy needs 400 ns to make one from a float.
# 1, 1.0 and True are one key, which is right since the type is floating; zero is left out since
# 0.0 and -0.0 are one key too.
scalar_cache: dict[tuple[np.dtype, Any], np.ndarray] = {}


def scalar_operand(x: np.ndarray, value: Any, wide: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """The two operands of an op on an array and a Python number, in their common type; if `wide`,
    a number that a half type would round is float32."""
    d = x.dtype
    if d in dtypes.FLOATING and (type(value) is not complex or d.kind in "cW"):
        y = np.asarray(value)
        y = convert(y, d) if y.dtype.kind != "O" else convert(np.asarray(float(value)), d)
        if is_half(d) and float(y) != value:
            return x, np.asarray(value, dtypes.float32.numpy) if wide else y
        if value and len(scalar_cache) < 1000:
            scalar_cache[d, value] = y
        return x, y
    target = result_type([x], [value]).numpy
    if type(value) in (float, complex):
        return convert(x, target), convert(np.asarray(value), target)
    try:
        y = np.asarray(value, target)
    except OverflowError:
        if target.kind in "ui" and -2 ** 63 <= value < 2 ** 64:     # torch wraps what does not fit
            wrapped = value & (2 ** (8 * target.itemsize) - 1)
            y = np.asarray(wrapped, f"u{target.itemsize}").view(target)
        else:
            raise OverflowError("can't convert negative int to unsigned" if value < 0
                                else "int too big to convert") from None
    return convert(x, target), y


_C_NAMES = {"float32": "float", "float64": "double", "float16": "c10::Half",
            "bfloat16": "c10::BFloat16", "complex64": "c10::complex<float>",
            "complex128": "c10::complex<double>", "complex32": "c10::complex<c10::Half>",
            "int64": "long int", "int32": "int", "int16": "short int", "int8": "signed char",
            "uint64": "long unsigned int", "uint32": "unsigned int",
            "uint16": "short unsigned int", "uint8": "unsigned char"}


def c_name(dtype: Any) -> str:
    """What C++ calls a type, as some of PyTorch's messages do."""
    name = dtype.name
    return _C_NAMES.get(name, f"c10::F{name[1:]}" if name.startswith("float8") else name)


def in_single(kernel: Any) -> Any:
    """`kernel`, for complex32 in complex64."""
    @wraps(kernel)
    def run(x: np.ndarray, *rest: Any) -> np.ndarray:
        if x.dtype.kind != "W":
            return kernel(x, *rest)
        wide = [convert(a, np.dtype(np.complex64)) if type(a) is np.ndarray else a
                for a in (x, *rest)]
        return convert(kernel(*wide), x.dtype)
    return run
