"""Binding: which values of a call belong to which parameters, tried overload by overload.

This is the twin of the binder in C, complete and readable, and what C asks when it is not sure:
about NumPy's numbers, about tensors of one number where a number is wanted, about subclasses.

>>> from flambeau.schema.signature import Signature, function_signature
>>> flip = function_signature(parse("flip(Tensor self, int[] dims) -> Tensor"))
>>> x = flambeau.ones(2)
>>> bind(flip, "flip", (x, (0,)), {}) == [x, (0,)]
True
>>> bind(flip, "flip", (x, "a"), {})
"flip(): argument 'dims' (position 2) must be tuple of ints, not str"
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, wraps
from typing import Any

import numpy as np

from flambeau.core import devices, dtypes, type_info
from flambeau.core.generator import Generator
from flambeau.core.promotion import number_of
from flambeau.core.tensor import Tensor, gradient_edge
from flambeau.schema import errors
from flambeau.schema.parser import Parameter, parse
from flambeau.schema.signature import NUMPY_NAMES, Signature, function_signature


class NoFurtherOverload(TypeError):
    """A value for which no further overload is tried."""


def bind(signature: Signature, name: str, args: Sequence[Any], kwargs: dict[str, Any], *,
         numbers_as_tensors: bool = False) -> list[Any] | str:
    """The value of each parameter, with defaults; or what is wrong, as a message."""
    parameters, positions, count = signature.parameters, signature.positions, len(args)
    one_by_one = signature.takes_numbers_one_by_one and (count < 2 or is_index(args[0]))
    if count > positions and not one_by_one:
        return errors.too_many(signature, name, count)
    values: list[Any] = []
    given: list[int] = []
    used, place, unpacked = 0, 0, ""
    for i, parameter in enumerate(parameters):
        positional = place < count
        if positional and parameter.by_name:
            return errors.too_many(signature, name, count)
        spelled = parameter.name if positional else _given_name(parameter.name, kwargs)
        if spelled is None:
            if parameter.default is None:
                return errors.missing(signature, name, i)
            values.append(parameter.value)
            continue
        value = args[place] if positional else kwargs[spelled]
        used += not positional
        place += positional
        if value is None and (parameter.nullable or parameter.default == "[]"):
            values.append(None if parameter.nullable else parameter.value)
            continue
        given.append(i)
        if not fits(parameter, value, numbers_as_tensors, i):
            if not (one_by_one and place == 1 and positional and is_index(value)):
                said = errors.wrong_type(parameter, value, place if positional else 0)
                return f"{name}(): {said}"
            value, place = tuple(args), count
        if parameter.kind == "int" and isinstance(value, (tuple, list)):
            # of several, the last one is named
            unpacked = _unpacking_error(name, parameter, value) or unpacked
        values.append(value)
    if used < len(kwargs):
        return errors.unknown_name(signature, name, kwargs, count)
    if unpacked:
        return unpacked
    for i in given:                     # only now: of tensors that is a look at their values
        values[i] = as_declared(parameters[i], values[i])
    return values


def _given_name(name: str, kwargs: dict[str, Any]) -> str | None:
    if not kwargs or name in kwargs:
        return name if name in kwargs else None
    return next((other for other in NUMPY_NAMES.get(name, ()) if other in kwargs), None)


def _unpacking_error(name: str, parameter: Parameter, values: Sequence[Any]) -> str:
    """Elements after the first are looked at when the overload has been chosen."""
    for j, item in enumerate(values):
        if type(item) is int and not -2 ** 63 <= item < 2 ** 63:
            return (f"{name}(): argument '{parameter.name}' failed to unpack the object at pos "
                    f'{j + 1} with error "Overflow when unpacking long long')
        if not (is_index(item) or (j and isinstance(item, bool))):
            return (f"{name}(): argument '{parameter.name}' failed to unpack the object at pos "
                    f"{j + 1} with error \"type must be tuple of ints,but got "
                    f'{errors.type_name(item)}"')
    return ""


# ---- does a value fit? ---------------------------------------------------------------------------

def _is_number_tensor(value: Any) -> bool:          # asks no method that a subclass overrides
    return isinstance(value, Tensor) and value._array.ndim == 0 \
        and gradient_edge(value) is None


def is_int(value: Any) -> bool:
    if isinstance(value, Tensor):
        return _is_number_tensor(value) and value._array.dtype.kind in "iu"
    return hasattr(type(value), "__index__") and not isinstance(
        value, (bool, np.bool_, np.ndarray))


def is_index(value: Any) -> bool:
    """An integer among several: there tensors of one element count too, and arrays that are one
    number."""
    if isinstance(value, Tensor):
        return value._array.size == 1 and value._array.dtype.kind in "iub"
    if isinstance(value, np.ndarray):
        return value.ndim == 0 and value.dtype.kind in "iu"
    return is_int(value)


def is_float(value: Any) -> bool:
    return isinstance(value, (int, float, np.number, np.bool_)) or _is_number_tensor(
        value) or hasattr(value, "__sym_float__")


_CHECKS: dict[str, Callable[[Any], bool]] = {
    "Tensor": lambda value: isinstance(value, Tensor),
    "Storage": lambda value: "Storage" in type(value).__name__,
    "int": is_int,
    "float": is_float,
    "Scalar": lambda value: isinstance(value, complex) or is_float(value),
    "bool": lambda value: isinstance(value, (bool, np.bool_)) or hasattr(value, "__sym_not__"),
    "str": lambda value: isinstance(value, (str, bytes)),
    "Dimname": lambda value: isinstance(value, str) or value is None,
    "ScalarType": lambda value: isinstance(value, dtypes.dtype) or any(
        value is kind for kind in (int, float, bool, complex)),
    "Device": lambda value: isinstance(value, (devices.device, str, bytes)) or (
        is_int(value) and not isinstance(value, Tensor)),
    "Layout": lambda value: isinstance(value, type_info.layout),
    "MemoryFormat": lambda value: isinstance(value, type_info.memory_format),
    "Generator": lambda value: isinstance(value, Generator),
}


def _is_kind(kind: str, value: Any) -> bool:
    return kind not in _CHECKS or _CHECKS[kind](value)


def fits(parameter: Parameter, value: Any, numbers_as_tensors: bool = False, place: int = 0
         ) -> bool:
    """Is `value` one for this parameter? Raises `NoFurtherOverload` if PyTorch tries no other."""
    kind = parameter.kind
    if not parameter.is_list:
        return _is_kind(kind, value) or (
            numbers_as_tensors and kind == "Tensor" and _is_kind("Scalar", value)
            and not isinstance(value, Tensor))
    if not isinstance(value, (tuple, list)):
        return parameter.size > 0 and (is_index(value) if kind == "int" else
                                       kind == "float" and _is_kind(kind, value))
    if kind == "Tensor":
        for i, item in enumerate(value):
            if not isinstance(item, Tensor) and not (item is None and parameter.nullable_items):
                raise NoFurtherOverload(f"expected Tensor as element {i} in argument {place}, but "
                                        f"got {errors.type_name(item)}")
        return True
    if kind == "float" and value and isinstance(value[0], Tensor):
        return False
    return not value or (is_index(value[0]) if kind == "int" else _is_kind(kind, value[0]))


# ---- values as kernels take them -----------------------------------------------------------------

def as_declared(parameter: Parameter, value: Any) -> Any:
    """A value that fits, with Python's numbers for NumPy's and for tensors of one number, and with
    a tuple for the single value of a list."""
    kind = parameter.kind
    if kind not in ("int", "float", "Scalar", "bool"):
        if type(value) is int and kind == "Tensor":             # a number for it
            _check_range(value)
        return value.decode() if type(value) is bytes and kind in ("str", "Device") else value
    if not parameter.is_list:
        return _as_python_number(value, kind)
    if not isinstance(value, (tuple, list)):
        return (_as_python_number(value, kind),) * parameter.size
    if any(isinstance(v, (Tensor, np.generic)) for v in value):
        return tuple([_as_python_number(v) for v in value])
    return value


def _as_python_number(value: Any, kind: str = "") -> Any:
    found = value
    if isinstance(value, Tensor):
        found = value.item()
        if kind == "float" and type(found) is complex:
            raise RuntimeError("value cannot be converted to type double without overflow")
    elif isinstance(value, np.generic):
        found = bool(value) if kind == "bool" else number_of(value)
    if kind == "int" and type(found) is int and not -2 ** 63 <= found < 2 ** 63:
        raise ValueError("Overflow when unpacking long long")
    if kind and type(found) is int:
        _check_range(found)
    return found


def _check_range(number: int) -> None:
    """Raise for an integer that no element type holds."""
    if number >= 2 ** 64:
        raise OverflowError("int too big to convert")
    if number < -2 ** 63:
        raise OverflowError("can't convert negative int to unsigned")


# ---- functions of C that are no ops --------------------------------------------------------------

def bound_by(*schemas: str) -> Callable[[Callable[..., Any]], Any]:
    """Decorates a function whose arguments are bound by schemas. It takes the values of the
    parameters of the one that a call fits; several are told apart by how many those are."""
    def decorate(function: Callable[..., Any]) -> Any:
        @wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            return function(*bound(schemas, args, kwargs))
        return called
    return decorate


@cache
def _signatures(schemas: tuple[str, ...]) -> list[Any]:
    return [function_signature(parse(text)) for text in schemas]


def bound(schemas: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The values of the parameters of the first of the schemas that a call fits."""
    name, said, signatures = schemas[0].partition("(")[0], [], _signatures(schemas)
    for signature in signatures:
        try:
            values = bind(signature, name, args, kwargs)
        except NoFurtherOverload as error:
            raise TypeError(str(error)) from None
        if not isinstance(values, str):
            return values
        said.append(values)
    raise TypeError(errors.fits_none(name, signatures, said, args, kwargs))


__all__ = ["NoFurtherOverload", "as_declared", "bind", "bound", "bound_by", "fits", "is_index",
           "is_int", "parse"]
