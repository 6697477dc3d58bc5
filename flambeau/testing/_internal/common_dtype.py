"""Sets of element types, as tests name them: tuples, of which some take further types.

>>> from flambeau.testing._internal.common_dtype import floating_types_and
>>> floating_types_and(flambeau.half)
(torch.float32, torch.float64, torch.float16)
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau
from flambeau import dtype


def _validate_dtypes(*dtypes: Any) -> tuple[Any, ...]:
    for given in dtypes:
        if not isinstance(given, dtype):
            raise AssertionError(f"Expected dtype to be torch.dtype, got {type(given)}")
    return dtypes


class _dispatch_dtypes(tuple[Any, ...]):
    """A tuple of types that stays one of its kind where others are added."""

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, tuple):
            raise AssertionError(f"Expected other to be a tuple, got {type(other)}")
        return _dispatch_dtypes(tuple.__add__(self, other))


_empty_types = _dispatch_dtypes(())
_double_types = _dispatch_dtypes((flambeau.float64, flambeau.complex128))
_floating_types = _dispatch_dtypes((flambeau.float32, flambeau.float64))
_floating_types_and_half = _floating_types + (flambeau.half,)
_complex_types = _dispatch_dtypes((flambeau.cfloat, flambeau.cdouble))
_floating_and_complex_types = _floating_types + _complex_types
_integral_types = _dispatch_dtypes((flambeau.uint8, flambeau.int8, flambeau.int16, flambeau.int32,
                                    flambeau.int64))
_all_types = _floating_types + _integral_types
_all_types_and_half = _all_types + (flambeau.half,)
_all_types_and_complex = _all_types + _complex_types
_float8_types = _dispatch_dtypes((flambeau.float8_e4m3fn, flambeau.float8_e4m3fnuz,
                                  flambeau.float8_e5m2, flambeau.float8_e5m2fnuz))
_all_mps_types = _dispatch_dtypes((flambeau.float, flambeau.half, flambeau.bfloat16)) \
    + _integral_types

float_to_corresponding_complex_type_map = {
    flambeau.float16: flambeau.complex32, flambeau.float32: flambeau.complex64,
    flambeau.float64: flambeau.complex128}


def _named(name: str, dtypes: Any) -> Callable[[], Any]:
    def types() -> Any:
        return dtypes
    types.__name__ = types.__qualname__ = name
    types.__doc__ = f"{', '.join(str(d)[6:] for d in dtypes) or 'None'}."
    return types


def _extended(name: str, base: Any) -> Callable[..., Any]:
    def types(*dtypes: Any) -> Any:
        return base + _validate_dtypes(*dtypes)
    types.__name__ = types.__qualname__ = name
    types.__doc__ = f"{', '.join(str(d)[6:] for d in base) or 'None'}, and the types given."
    return types


empty_types = _named("empty_types", _empty_types)
double_types = _named("double_types", _double_types)
floating_types = _named("floating_types", _floating_types)
floating_types_and_half = _named("floating_types_and_half", _floating_types_and_half)
floating_types_and = _extended("floating_types_and", _floating_types)
complex_types = _named("complex_types", _complex_types)
complex_types_and = _extended("complex_types_and", _complex_types)
floating_and_complex_types = _named("floating_and_complex_types", _floating_and_complex_types)
floating_and_complex_types_and = _extended("floating_and_complex_types_and",
                                           _floating_and_complex_types)
integral_types = _named("integral_types", _integral_types)
integral_types_and = _extended("integral_types_and", _integral_types)
all_types = _named("all_types", _all_types)
all_types_and = _extended("all_types_and", _all_types)
all_types_and_half = _named("all_types_and_half", _all_types_and_half)
all_types_and_complex = _named("all_types_and_complex", _all_types_and_complex)
all_types_and_complex_and = _extended("all_types_and_complex_and", _all_types_and_complex)
all_types_complex_float8_and = _extended("all_types_complex_float8_and",
                                         _all_types_and_complex + _float8_types)
float8_types = _named("float8_types", _float8_types)
float8_types_and = _extended("float8_types_and", _float8_types)
all_mps_types = _named("all_mps_types", _all_mps_types)
all_mps_types_and = _extended("all_mps_types_and", _all_mps_types)
custom_types = _extended("custom_types", _empty_types)


def get_all_dtypes(include_half: bool = True, include_bfloat16: bool = True,
                   include_bool: bool = True, include_complex: bool = True,
                   include_complex32: bool = False, include_qint: bool = False) -> list[dtype]:
    """The types of elements, of these kinds."""
    found = get_all_int_dtypes() + get_all_fp_dtypes(include_half, include_bfloat16)
    if include_bool:
        found.append(flambeau.bool)
    if include_complex:
        found += get_all_complex_dtypes(include_complex32)
    return found + (get_all_qint_dtypes() if include_qint else [])


def get_all_math_dtypes(device: Any) -> list[dtype]:
    """The types that all functions of numbers take on a device."""
    halves = flambeau.device(device).type == "cuda"
    return (get_all_int_dtypes() + get_all_fp_dtypes(halves, include_bfloat16=False)
            + get_all_complex_dtypes())


def get_all_complex_dtypes(include_complex32: bool = False) -> list[dtype]:
    """The complex types."""
    return [*([flambeau.complex32] if include_complex32 else []), *_complex_types]


def get_all_int_dtypes() -> list[dtype]:
    """The types of whole numbers."""
    return list(_integral_types)


def get_all_fp_dtypes(include_half: bool = True, include_bfloat16: bool = True) -> list[dtype]:
    """The floating types."""
    return [*_floating_types, *([flambeau.float16] if include_half else []),
            *([flambeau.bfloat16] if include_bfloat16 else [])]


def get_all_qint_dtypes() -> list[dtype]:
    """The quantised types."""
    return [flambeau.qint8, flambeau.quint8, flambeau.qint32, flambeau.quint4x2,
            flambeau.quint2x4]


def highest_precision_float(device: Any) -> dtype:
    """The floating type of most digits that a device has."""
    single = flambeau.device(device).type == "mps"
    return flambeau.float32 if single else flambeau.float64


def highest_precision_complex(device: Any) -> dtype:
    """The complex type of most digits that a device has."""
    return float_to_corresponding_complex_type_map[highest_precision_float(device)]
