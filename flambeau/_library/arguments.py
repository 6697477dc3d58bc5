"""Binding the arguments of a call of a registered op to its schema."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau import Tensor
from flambeau._support.symbolic_names import SymBool, SymFloat, SymInt
from flambeau.schema.function_schema import MISSING, FunctionSchema
from flambeau.schema.types import (
    BoolType,
    DeviceObjType,
    FloatType,
    IntType,
    ListType,
    NumberType,
    OptionalType,
    StringType,
    TensorType,
    Type,
)

_MORE = ("Cast error details: Unable to cast Python instance of type {} to C++ type '?' (#define "
         "PYBIND11_DETAILED_ERROR_MESSAGES or compile in debug mode for details)")
_HELD: dict[Any, tuple[type, ...]] = {
    IntType: (int, SymInt), FloatType: (float, int, SymFloat, SymInt), BoolType: (bool, SymBool),
    NumberType: (int, float, complex, SymInt, SymFloat, Tensor), StringType: (str,),
    TensorType: (Tensor,), DeviceObjType: (flambeau.device, str)}
_AS_NUMBERS = {"ScalarType": flambeau.dtype, "Layout": flambeau.layout,
               "MemoryFormat": flambeau.memory_format, "QScheme": flambeau.qscheme}


class _Misfit(Exception):
    """A value is not of the type that the schema says."""


def _converted(kind: Type, value: Any, length: int | None = None) -> Any:
    """A value as kernels get it."""
    if isinstance(kind, OptionalType):
        return None if value is None else _converted(kind.getElementType(), value, length)
    if isinstance(kind, ListType):
        element = kind.getElementType()
        if not isinstance(value, (list, tuple)):
            if length is None:
                raise _Misfit
            return [_converted(element, value)] * length
        return [_converted(element, v) for v in value]
    wanted = _AS_NUMBERS.get(kind.declared) or _HELD.get(type(kind))
    if wanted is None:                      # an object of a class that is not looked into
        return value
    if not isinstance(value, wanted):
        if isinstance(kind, (IntType, FloatType)) and _is_integral(value, kind):
            return value.item() if isinstance(value, Tensor) else int(value)
        raise _Misfit
    if isinstance(kind, IntType) and isinstance(value, bool) and kind.declared not in _AS_NUMBERS:
        return int(value)
    if isinstance(kind, FloatType) and type(value) is int:
        return float(value)
    if isinstance(kind, DeviceObjType):
        return flambeau.device(value)
    return value


def _is_integral(value: Any, kind: Type) -> bool:
    if isinstance(value, Tensor):
        return value.ndim == 0 and (isinstance(kind, FloatType) or not value.is_floating_point())
    return hasattr(value, "__index__") and not isinstance(value, Tensor)


def bind(name: str, schema: FunctionSchema, args: tuple[Any, ...], kwargs: dict[str, Any]
         ) -> tuple[Any, ...]:
    """All arguments, in order, with defaults; RuntimeError if the call does not fit."""
    declaration = f"Declaration: {schema}"
    positional = [a for a in schema.arguments if not a.keyword_only]
    if len(args) > len(positional):
        if len(positional) < len(schema.arguments):
            raise RuntimeError(f"{name}() takes {len(positional)} positional argument(s) but "
                               f"{len(args)} was/were given.  {declaration}")
        raise RuntimeError(f"{name}() expected at most {len(positional)} argument(s) but received "
                           f"{len(args)} argument(s). {declaration}")
    given = dict(kwargs)
    bound = []
    for i, argument in enumerate(schema.arguments):
        if i < len(args):
            value = args[i]
            if argument.name in given:
                raise RuntimeError(f"Argument '{argument.name}' specified both as positional and "
                                   f"keyword argument. Schema: {schema}")
        else:
            value = given.pop(argument.name, argument.default)
        if value is MISSING:
            raise RuntimeError(f"{name}() is missing value for argument '{argument.name}'. "
                               f"{declaration}")
        try:
            bound.append(value if value is argument.default
                         else _converted(argument.type, value, argument.N))
        except _Misfit:
            raise RuntimeError(
                f"{name}() Expected a value of type '{argument.type}' for argument "
                f"'{argument.name}' but instead found type '{_type_name(value)}'.\nPosition: {i}"
                f"\nValue: {value!r}\n{declaration}\n{_MORE.format(type(value))}") from None
    for unknown in given:
        raise RuntimeError(f"Unknown keyword argument '{unknown}' for operator '{name}'. "
                           f"Schema: {schema}")
    return tuple(bound)


def _type_name(value: Any) -> str:
    return "Tensor" if isinstance(value, Tensor) else type(value).__name__


def split(schema: FunctionSchema, values: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional and keyword arguments of a call, of the values of all arguments."""
    count = sum(not a.keyword_only for a in schema.arguments)
    return tuple(values[:count]), {
        a.name: v for a, v in zip(schema.arguments[count:], values[count:])}


__all__ = ["bind", "split"]
