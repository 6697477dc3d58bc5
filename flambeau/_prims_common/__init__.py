"""Questions about dtypes and sizes.

>>> infer_size((2, -1), 6)
(2, 3)
>>> is_integer_dtype(flambeau.int32), is_float_dtype(flambeau.int32)
(True, False)
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum
from typing import Any

import flambeau
from flambeau import dtype as _dtype
from flambeau.core.shapes import contiguous_strides, wrap_dim
from flambeau.core.shapes import is_expandable_to as is_expandable_to

DeviceLikeType = str | flambeau.device | int
ShapeType = flambeau.Size | list[int] | tuple[int, ...]
StrideType = DimsSequenceType = list[int] | tuple[int, ...]
DimsType = int | list[int] | tuple[int, ...]
NumberType = bool | int | float | complex
RealNumberType = bool | int | float
Number = (bool, int, float, complex, flambeau.SymInt, flambeau.SymFloat, flambeau.SymBool)
IntLike = (int, flambeau.SymInt)
FloatLike = (float, flambeau.SymFloat)
TensorLike = TensorLikeType = flambeau.Tensor

# ---- sizes and strides ---------------------------------------------------------------------------


def infer_size(shape: Sequence[int], numel: int) -> tuple[int, ...]:
    """`shape` with its -1 filled in, for `numel` elements."""
    free = [i for i, d in enumerate(shape) if d == -1]
    if len(free) > 1:
        raise RuntimeError("only one dimension can be inferred")
    negative = [d for d in shape if d < -1]
    if negative:
        raise RuntimeError(f"invalid shape dimension {negative[0]}")
    known = math.prod(d for d in shape if d != -1)
    wrong = RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}")
    if not free:
        if known != numel:
            raise wrong
        return tuple(shape)
    if known == 0:
        raise wrong if numel else RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified "
            "dimension size -1 can be any value and is ambiguous")
    if numel % known:
        raise wrong
    return tuple(numel // known if d == -1 else d for d in shape)


def canonicalize_dim(rank: int, idx: int, wrap_scalar: bool = True) -> int:
    """A dimension counted from the front; a tensor without dimensions counts as having one."""
    if rank < 0:
        raise AssertionError(f"Rank cannot be negative but got {rank}")
    if rank == 0 and not wrap_scalar:
        raise IndexError(f"Dimension specified as {idx} but tensor has no dimensions")
    return wrap_dim(idx, rank)


def canonicalize_dims(rank: int, indices: Any, wrap_scalar: bool = True) -> Any:
    """One dimension or several, counted from the front."""
    if isinstance(indices, int):
        return canonicalize_dim(rank, indices, wrap_scalar)
    return tuple(canonicalize_dim(rank, one, wrap_scalar) for one in indices)


def reduction_dims(shape: Sequence[int], dims: Sequence[int] | None) -> tuple[int, ...]:
    """The dimensions that a reduction runs over: all of them for None."""
    if dims is None:
        return tuple(range(len(shape)))
    found = canonicalize_dims(len(shape), tuple(dims))
    if len(set(found)) != len(found):
        raise RuntimeError("duplicate value in the list of dims")
    return found


def make_contiguous_strides_for(shape: Sequence[int], row_major: bool = True) -> tuple[int, ...]:
    """The strides of a contiguous tensor; or with the last two dimensions in columns.

    >>> make_contiguous_strides_for((2, 3, 4))
    (12, 4, 1)
    """
    strides = contiguous_strides(shape)
    if row_major or len(shape) < 2:
        return strides
    return (*strides[:-2], 1, max(shape[-2], 1))


def make_channels_last_strides_for(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a batch of signals, images or volumes whose channels lie innermost."""
    if len(shape) not in (3, 4, 5):
        raise RuntimeError(f"no channels last format strides exist in {len(shape)} dimensions")
    strides, step = [0] * len(shape), 1
    for dim in (1, *range(len(shape) - 1, 1, -1), 0):
        strides[dim] = step
        step *= max(shape[dim], 1)
    return tuple(strides)


def is_contiguous(a: Any, false_if_dde: bool = False) -> bool:
    return a.is_contiguous()


def suggest_memory_format(x: Any) -> Any:
    """The memory format that results computed from `x` should have."""
    if x.layout == flambeau.strided:
        for dims, form in ((4, flambeau.channels_last), (5, flambeau.channels_last_3d)):
            if x.ndim == dims and not x.is_contiguous() and x.is_contiguous(memory_format=form):
                return form
    return flambeau.contiguous_format


def is_same_shape(a: Sequence[int], b: Sequence[int]) -> bool:
    return tuple(a) == tuple(b)


def extract_shape_from_varargs(shape: Any, validate: bool = True) -> tuple[int, ...]:
    """The shape that was given, as numbers or as one sequence."""
    if len(shape) == 1 and isinstance(shape[0], Sequence):
        shape = shape[0]
    if validate:
        validate_shape(shape)
    return tuple(shape)


def validate_shape(shape: Sequence[int]) -> None:
    for extent in shape:
        flambeau._check(extent >= 0)


def is_cpu_scalar_tensor(a: Any) -> bool:
    return isinstance(a, TensorLike) and a.ndim == 0 and a.device.type == "cpu"


def set_correction(unbiased: bool | None = None, correction: Any = None) -> float:
    """The correction of a variance, of which `unbiased` is the old form."""
    if unbiased is not None and correction is not None:
        raise RuntimeError("cannot specify both correction and unbiased arguments")
    if correction is None:
        correction = 1 if unbiased in (None, True) else 0
    if correction < 0:
        raise ValueError("correction argument should be non-negative")
    return float(correction)


# ---- types ---------------------------------------------------------------------------------------


class ELEMENTWISE_TYPE_PROMOTION_KIND(Enum):
    """How the result type of an elementwise op follows from those of its operands."""

    DEFAULT = (0,)
    NO_OPMATH = (1,)
    INT_TO_FLOAT = (2,)
    ALWAYS_BOOL = (3,)
    COMPLEX_TO_FLOAT = (4,)
    BOOL_TO_LONG = (5,)


_COMPUTED_IN = {flambeau.bfloat16: flambeau.float32, flambeau.float16: flambeau.float32,
                flambeau.complex32: flambeau.complex64}
_NUMBERS = (bool, int, float, complex)


def get_computation_dtype(dtype: _dtype) -> _dtype:
    """The type that elements are computed in: that of single precision for half types."""
    return _COMPUTED_IN.get(dtype, dtype)


def is_low_precision_dtype(dtype: _dtype) -> bool:
    _is_dtype(dtype)
    return dtype in _COMPUTED_IN


def elementwise_dtypes(*_args: Any, type_promotion_kind: ELEMENTWISE_TYPE_PROMOTION_KIND
                       ) -> tuple[_dtype, _dtype]:
    """The type to compute in, and the type of the result.

    >>> kind = ELEMENTWISE_TYPE_PROMOTION_KIND.INT_TO_FLOAT
    >>> elementwise_dtypes(flambeau.ones(2, dtype=flambeau.int8), type_promotion_kind=kind)
    (torch.float32, torch.float32)
    """
    kinds = ELEMENTWISE_TYPE_PROMOTION_KIND
    given = [a for a in _args if a is not None]
    found = given[0].dtype if len(given) == 1 and isinstance(given[0], TensorLike) else None
    for one in given[1:] if found is None else ():
        left = given[0] if found is None else flambeau.empty((1,), dtype=found)
        found = flambeau.result_type(left, one)
    if found is None:
        found = type_to_dtype(type(given[0]))
    if type_promotion_kind is kinds.INT_TO_FLOAT and not (
            found.is_floating_point or found.is_complex):
        found = flambeau.get_default_dtype()
    if type_promotion_kind is kinds.BOOL_TO_LONG and found is flambeau.bool:
        found = flambeau.int64
    computed = get_computation_dtype(found)
    if type_promotion_kind is kinds.NO_OPMATH:
        return found, found
    if type_promotion_kind is kinds.ALWAYS_BOOL:
        return computed, flambeau.bool
    if type_promotion_kind is kinds.COMPLEX_TO_FLOAT and found.is_complex:
        return computed, corresponding_real_dtype(found)
    return computed, found


def dtype_to_type(dtype: _dtype) -> type:
    """Python's type of numbers of this dtype."""
    _is_dtype(dtype)
    return bool if dtype is flambeau.bool else complex if dtype.is_complex else \
        float if dtype.is_floating_point else int


def type_to_dtype(typ: type) -> _dtype:
    """The dtype of tensors made of such numbers."""
    if typ not in _NUMBERS:
        raise ValueError(f"Invalid type {typ}!")
    return flambeau.tensor(typ()).dtype


def is_weakly_lesser_type(a: type, b: type) -> bool:
    """Does a number of type `a` fit one of type `b`?"""
    for one in (a, b):
        if one not in _NUMBERS:
            raise RuntimeError(f"Expected builtin numeric types, found {a}, {b}")
    return _NUMBERS.index(a) <= _NUMBERS.index(b)


def can_safe_cast_to(*, cast_to: _dtype, cast_from: _dtype) -> bool:
    return is_weakly_lesser_type(dtype_to_type(cast_from), dtype_to_type(cast_to))


def get_higher_dtype(a: Any, b: Any) -> _dtype | None:
    """The smallest type that holds both."""
    def of(one: Any) -> _dtype | None:
        if one is None or isinstance(one, _dtype):
            return one
        if isinstance(one, TensorLike):
            return one.dtype
        if isinstance(one, Number):
            return type_to_dtype(type(one))
        raise AssertionError(f"a must be None, torch.dtype, TensorLike, or Number, got {type(one)}")
    first, second = of(a), of(b)
    if first is None or second is None:
        return second if first is None else first
    return flambeau.promote_types(first, second)


def corresponding_real_dtype(dtype: _dtype) -> _dtype:
    return dtype.to_real()


def corresponding_complex_dtype(dtype: _dtype) -> _dtype:
    return dtype.to_complex()


def dtype_or_default(dtype: _dtype | None) -> _dtype:
    return flambeau.get_default_dtype() if dtype is None else dtype


def device_or_default(device: Any) -> Any:
    return flambeau.device("cpu") if device is None else device


def layout_or_default(layout: Any) -> Any:
    return flambeau.strided if layout is None else layout


def check_fp_or_complex(dtype: _dtype, fn_name: str, allow_low_precision_dtypes: bool = True
                        ) -> None:
    """Refuse types without fractions, and half types where they are not allowed."""
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"{fn_name}: Expected a floating point or complex tensor as input. Got "
                           f"{dtype}")
    if not allow_low_precision_dtypes and is_low_precision_dtype(dtype):
        raise RuntimeError(f"{fn_name}: Half precision dtypes not supported. Got {dtype}")


def _is_dtype(dtype: _dtype) -> None:
    if not isinstance(dtype, _dtype):
        raise AssertionError(f"Expected torch.dtype, got {type(dtype)}")


def is_boolean_dtype(dtype: _dtype) -> bool:
    _is_dtype(dtype)
    return dtype is flambeau.bool


def is_float_dtype(dtype: _dtype) -> bool:
    _is_dtype(dtype)
    return dtype.is_floating_point


def is_complex_dtype(dtype: _dtype) -> bool:
    _is_dtype(dtype)
    return dtype.is_complex


def is_integer_dtype(dtype: _dtype) -> bool:
    """Whether `dtype` holds whole numbers; bool isn't one."""
    _is_dtype(dtype)
    return not (dtype.is_floating_point or dtype.is_complex or dtype is flambeau.bool)
