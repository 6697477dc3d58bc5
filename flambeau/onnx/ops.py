"""Nodes of ONNX in a program: placeholders of the right shape when it runs."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.onnx import TensorProtoDataType as _T

__all__ = ["symbolic", "symbolic_multi_out"]

_DTYPES = {
    _T.FLOAT: flambeau.float32, _T.UINT8: flambeau.uint8, _T.INT8: flambeau.int8,
    _T.UINT16: flambeau.uint16, _T.INT16: flambeau.int16, _T.INT32: flambeau.int32,
    _T.INT64: flambeau.int64, _T.BOOL: flambeau.bool, _T.FLOAT16: flambeau.float16,
    _T.DOUBLE: flambeau.float64, _T.UINT32: flambeau.uint32, _T.UINT64: flambeau.uint64,
    _T.COMPLEX64: flambeau.complex64, _T.COMPLEX128: flambeau.complex128,
    _T.BFLOAT16: flambeau.bfloat16, _T.FLOAT8E4M3FN: flambeau.float8_e4m3fn,
    _T.FLOAT8E4M3FNUZ: flambeau.float8_e4m3fnuz, _T.FLOAT8E5M2: flambeau.float8_e5m2,
    _T.FLOAT8E5M2FNUZ: flambeau.float8_e5m2fnuz}


def symbolic(domain_op: str, /, inputs: Sequence[Tensor | None], attrs: Any = None, *,
             dtype: Any, shape: Sequence[int], version: int | None = None,
             metadata_props: dict[str, str] | None = None) -> Tensor:
    """A node `domain::Op` with one output: zeros of that type and shape.

    >>> import flambeau
    >>> symbolic("my.domain::Op", (), {"k": 1}, dtype=flambeau.float32, shape=(2,))
    tensor([0., 0.])
    """
    _check(attrs)
    return _placeholder(dtype, shape)


def symbolic_multi_out(domain_op: str, /, inputs: Sequence[Tensor | None], attrs: Any = None, *,
                       dtypes: Sequence[Any], shapes: Sequence[Sequence[int]],
                       version: int | None = None,
                       metadata_props: dict[str, str] | None = None) -> list[Tensor]:
    """A node with several outputs."""
    if len(dtypes) != len(shapes):
        raise ValueError(f"Number of dtypes must match number of shapes: {len(dtypes)} and "
                         f"{len(shapes)}")
    _check(attrs)
    return [_placeholder(dtype, shape) for dtype, shape in zip(dtypes, shapes)]


def _check(attrs: Any) -> None:
    for name, value in (attrs or {}).items():
        first = value[0] if isinstance(value, (list, tuple)) and value else value
        if not isinstance(first, (int, float, str, bool, list, tuple)):
            raise ValueError(f"Unsupported attribute type for {name}: {type(value)}")


def _placeholder(dtype: Any, shape: Sequence[int]) -> Tensor:
    if not isinstance(dtype, flambeau.dtype):
        dtype = _DTYPES[_T(dtype)]
    return flambeau.zeros(tuple(shape), dtype=dtype)
