"""What PyTorch's dispatcher takes as a value of a type of its schemas.

It is more generous than the parser of Python functions: a number of NumPy is a number, a tensor of
one element too, any sequence of these a list.

>>> from flambeau.schema.function_schema import parse_type
>>> cast(parse_type("int[2]"), 3, 2), cast(parse_type("bool"), None), cast(parse_type("float"), 1)
([3, 3], False, 1.0)
>>> cast(parse_type("int"), 1.5)
Traceback (most recent call last):
flambeau.schema.casts.Misfit: Unable to cast Python instance of type <class 'float'> to C++ type \
'?' (#define PYBIND11_DETAILED_ERROR_MESSAGES or compile in debug mode for details)
"""
from __future__ import annotations

import operator
from collections.abc import Callable, Sequence, Set
from functools import cache
from types import GeneratorType
from typing import Any

import numpy as np

from flambeau._support.symbolic_names import SymBool, SymFloat, SymInt
from flambeau.core.devices import device
from flambeau.core.dtypes import dtype_by_name
from flambeau.core.tensor import Tensor
from flambeau.schema.function_schema import ELEMENT_TYPES
from flambeau.schema.types import ListType, OptionalType, SymIntType, TensorType, Type


class Misfit(Exception):
    """A value is not of the type that the schema says; the text says how the cast failed. It is
    made when it is asked for: a call of an op of several overloads misses some before one fits."""

    introduction = "Cast error details: "

    def __str__(self) -> str:
        text, value = self.args
        return text.format(value=value, type=type(value))


class _NotIterable(Misfit):
    """A value that should be a list is nothing that Python can go through."""

    introduction = ""


def _misfit(value: Any) -> Misfit:
    return Misfit("Unable to cast Python instance of type {type} to C++ type '?' (#define "
                  "PYBIND11_DETAILED_ERROR_MESSAGES or compile in debug mode for details)", value)


def cast(kind: Type, value: Any, length: int | None = None, numbers: bool = False) -> Any:
    """A value as kernels get it; with `numbers`, a number can stand for a tensor."""
    if isinstance(kind, OptionalType):
        return None if value is None else cast(kind.getElementType(), value, length, numbers)
    if isinstance(kind, ListType):
        return _list(kind.getElementType(), value, length, numbers)
    name = kind._schema_name or kind._name
    if name == "Tensor":
        return _tensor(value, numbers)
    known = _CASTS.get(name)
    return value if known is None else known(value)     # None: a class that is not looked into


def _list(element: Type, value: Any, length: int | None, numbers: bool) -> Any:
    declared = element._schema_name or element._name
    whole = isinstance(value, (list, tuple))
    if declared == "int" and whole and all(type(v) is int for v in value):
        _in_range(value)
        return value
    if length is not None and isinstance(value, _REPEATED.get(declared, ())):
        return [value if type(value) is int and abs(value) < 2 ** 63 else cast(element, value)
                ] * length
    if declared in _VECTORS:
        if isinstance(value, (str, bytes, bytearray, Tensor)) or not isinstance(
                value, (Sequence, Set, GeneratorType, np.ndarray)):
            raise _misfit(value)
        try:
            found = [_element(element, v, numbers) for v in value]
        except Misfit:
            raise _misfit(value) from None
        return value if whole and declared == "Tensor" else found
    try:
        items = list(value)
    except TypeError as error:
        raise _NotIterable("\n Python error details: TypeError: {value}", error) from None
    return [_element(element, v, numbers) for v in items]


def _element(kind: Type, value: Any, numbers: bool) -> Any:
    if isinstance(kind, TensorType) and value is None:
        raise _misfit(value)
    if isinstance(kind, SymIntType) and isinstance(value, Tensor) and (
            value.is_floating_point() or value.is_complex()):
        raise _misfit(value)
    return cast(kind, value, None, numbers)


def _in_range(values: Any) -> None:
    for value in values:
        if not -2 ** 63 <= value < 2 ** 63:
            raise _misfit(value)


def _tensor(value: Any, numbers: bool) -> Any:
    if value is None or isinstance(value, Tensor):
        return value
    if numbers and isinstance(value, (int, float, complex, np.number, SymInt, SymFloat)):
        _fits_64_bits(value)
        return value
    raise Misfit("Unable to cast {value!s} to Tensor", value)


def _fits_64_bits(value: Any) -> None:
    if isinstance(value, int) and not -2 ** 63 <= value < 2 ** 64:
        raise OverflowError("int too big to convert")


def _int(value: Any) -> Any:
    if isinstance(value, SymInt):
        return value
    if not isinstance(value, int):
        if isinstance(value, float) or not (
                hasattr(value, "__index__") or hasattr(value, "__int__")):
            raise _misfit(value)
        if isinstance(value, Tensor) and value.is_meta:
            raise Misfit("cannot extract int from tensor with meta storage", value)
        try:
            value = int(value)
        except (TypeError, ValueError, OverflowError, RuntimeError):
            raise _misfit(value) from None
    _in_range((value,))
    return operator.index(value)


def _float(value: Any) -> Any:
    if isinstance(value, (float, SymFloat, SymInt)):
        return value
    if isinstance(value, (str, bytes, complex)) or not (
            hasattr(value, "__float__") or hasattr(value, "__index__")):
        raise _misfit(value)
    if isinstance(value, Tensor) and value.is_meta:
        raise Misfit("cannot extract float from tensor with meta storage", value)
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        raise _misfit(value) from None


def _bool(value: Any) -> Any:
    if value is None or isinstance(value, (bool, SymBool)):
        return value if value is not None else False
    if not hasattr(type(value), "__bool__"):
        raise _misfit(value)
    try:
        return bool(value)
    except (TypeError, ValueError, RuntimeError):
        raise _misfit(value) from None


def _number(value: Any) -> Any:
    if isinstance(value, (int, float, SymInt, SymFloat, SymBool)) or type(value) is complex:
        _fits_64_bits(value)
        return value
    code = _code(value)
    if code is None:
        raise Misfit("Cannot cast {value!s} to number", value)
    return code


@cache
def _codes() -> dict[str, list[Any]]:
    """What has a number in schemas, in the order of the numbers, by class."""
    import flambeau
    def listed(names: str) -> list[Any]:
        return [getattr(flambeau, name) for name in names.split()]
    return {"dtype": [dtype_by_name(name) for name in ELEMENT_TYPES],
            "layout": listed("strided sparse_coo sparse_csr _mkldnn sparse_csc sparse_bsr "
                             "sparse_bsc jagged"),
            "memory_format": listed("contiguous_format preserve_format channels_last "
                                    "channels_last_3d"),
            "qscheme": listed("per_tensor_affine per_channel_affine per_tensor_symmetric "
                              "per_channel_symmetric per_channel_affine_float_qparams")}


def _code(value: Any) -> int | None:
    """The number that stands for an element type, a layout, a memory format; None for others."""
    known = _codes().get(type(value).__name__)
    return known.index(value) if known is not None and value in known else None


def _string(value: Any) -> Any:
    if isinstance(value, str):
        return value
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode()
    raise _misfit(value)


def _device(value: Any) -> Any:
    return value if isinstance(value, device) else device(_string(value))


def _coded(name: str) -> Callable[[Any], Any]:
    """What is a number to the dispatcher: an element type, a layout, a memory format."""
    def convert(value: Any) -> Any:
        known = _codes()[name]
        if isinstance(value, type(known[0])):
            return value
        number = _int(value)
        if 0 <= number < len(known):
            return known[number]
        raise RuntimeError("Unsupported TypeMeta in ATen: nullptr (uninitialized) (please report "
                           "this error)")

    return convert


def _plain_int(value: Any) -> Any:
    code = None if type(value) is int else _code(value)
    return _int(value) if code is None else code


def _generator(value: Any) -> Any:
    import flambeau
    if not isinstance(value, flambeau.Generator):
        raise _misfit(value)
    return value


def _storage(value: Any) -> Any:
    if "Storage" not in type(value).__name__:
        raise _misfit(value)
    return value


_VECTORS = ("int", "float", "bool", "Tensor")
_REPEATED: dict[str, Any] = {"int": int, "float": float}
_CASTS: dict[str, Callable[[Any], Any]] = {
    "int": _plain_int, "SymInt": _int, "float": _float, "SymFloat": _float, "bool": _bool,
    "SymBool": _bool, "str": _string, "Scalar": _number, "number": _number, "Device": _device,
    "ScalarType": _coded("dtype"), "Layout": _coded("layout"),
    "MemoryFormat": _coded("memory_format"), "QScheme": _coded("qscheme"),
    "Generator": _generator, "Storage": _storage}


__all__ = ["Misfit", "cast"]
