"""Names of element types that no array has: packed integers, bare bits, and quantised integers.
complex32, which arrays have where ml_dtypes is new enough, is looked up here too.

PyTorch has them for programs that hand memory to special hardware; it can neither print nor
compute with such tensors. The quantised ones are the types of what `quantize_per_tensor` and its
kind make. Asked for arrays of any other sort, they say so.

>>> import flambeau
>>> flambeau.int4, flambeau.quint8.itemsize
(torch.int4, 1)
>>> flambeau.zeros(2, dtype=flambeau.int4)
Traceback (most recent call last):
    ...
NotImplementedError: tensors of dtype torch.int4 are not implemented
"""
from __future__ import annotations

from contextlib import suppress
from typing import Any

from flambeau.core.dtypes import dtype


def _make_dtype(name: str, kind: str = "packed", itemsize: int = 1,
                is_signed: bool = False) -> dtype:
    made = dtype._made(name, kind, f"arrays of {name}", __name__)
    vars(made).update(itemsize=itemsize, _is_signed=is_signed)
    return made


int1, int2, int3, int4, int5, int6, int7 = (
    _make_dtype(f"int{n}", is_signed=True) for n in range(1, 8))
uint1, uint2, uint3, uint4, uint5, uint6, uint7 = (_make_dtype(f"uint{n}") for n in range(1, 8))
bits1x8, bits2x4, bits4x2, bits8 = (_make_dtype(f"bits{n}") for n in ("1x8", "2x4", "4x2", "8"))
bits16 = _make_dtype("bits16", itemsize=2)
quint8, qint8, quint4x2, quint2x4 = (
    _make_dtype(n, "quantized") for n in ("quint8", "qint8", "quint4x2", "quint2x4"))
qint32 = _make_dtype("qint32", "quantized", itemsize=4)
float4_e2m1fn_x2 = _make_dtype("float4_e2m1fn_x2", "f", is_signed=True)
bit = uint1


def __getattr__(name: str) -> Any:
    """What `dtype.numpy` comes to for these types."""
    if name == "complex32":
        with suppress(ImportError):
            from ml_dtypes import complex32
            return complex32
        raise NotImplementedError("tensors of dtype torch.complex32 need ml_dtypes 0.6 or later")
    if name.startswith("arrays of "):
        raise NotImplementedError(f"tensors of dtype torch.{name.split()[-1]} are not implemented")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
