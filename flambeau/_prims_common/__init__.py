"""Questions about dtypes and sizes.

>>> infer_size((2, -1), 6)
(2, 3)
>>> is_integer_dtype(flambeau.int32), is_float_dtype(flambeau.int32)
(True, False)
"""
from __future__ import annotations

import math
from collections.abc import Sequence

import flambeau
from flambeau import dtype as _dtype


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
