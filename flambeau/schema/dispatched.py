"""Binding a call to a schema as PyTorch's dispatcher does, which has rules and words of its own."""
from __future__ import annotations

from typing import Any

from flambeau._support.c_functions import type_name
from flambeau.schema.casts import Misfit, cast
from flambeau.schema.function_schema import MISSING, Argument, FunctionSchema


class WrongCall(Exception):
    """A call does not fit a schema; the text says why, and is made when it is asked for."""

    def __str__(self) -> str:
        text, schema, *values = self.args
        return text.format(*values, name=schema.name, schema=schema)


def bind(schema: FunctionSchema, args: tuple[Any, ...], kwargs: dict[str, Any],
         numbers: bool = False) -> list[Any]:
    """The value of each argument, MISSING where the default holds; WrongCall if it does not fit.

    >>> sums = FunctionSchema("sum(Tensor self, int[1]? dim, bool keepdim=False) -> Tensor")
    >>> bind(sums, (None, 3), {})
    [None, [3], MISSING]
    >>> bind(sums, (None,), {})
    Traceback (most recent call last):
    flambeau.schema.dispatched.WrongCall: aten::sum() is missing value for argument 'dim'. \
Declaration: aten::sum(Tensor self, int[1]? dim, bool keepdim=False) -> Tensor
    """
    known, given = schema.arguments, len(args) + len(kwargs)
    if given > len(known):
        raise WrongCall("{name}() expected at most {} argument(s) but received {} argument(s). "
                        "Declaration: {schema}", schema, len(known), given)
    values = []
    for i, value in enumerate(args):
        if known[i].keyword_only:
            raise WrongCall("{name}() takes {} positional argument(s) but {} was/were given.  "
                            "Declaration: {schema}", schema, i, len(args))
        values.append(_value(schema, i, value, numbers))
    used = 0
    for i in range(len(args), len(known)):
        argument = known[i]
        if argument.name in kwargs:
            used += 1
            values.append(_value(schema, i, kwargs[argument.name], numbers))
        elif argument.has_default_value():
            values.append(MISSING)
        else:
            raise WrongCall("{name}() is missing value for argument '{}'. Declaration: {schema}",
                            schema, argument.name)
    if used < len(kwargs):
        raise _unknown_argument(schema, len(args), kwargs)
    return values


def _value(schema: FunctionSchema, i: int, value: Any, numbers: bool) -> Any:
    argument: Argument = schema.arguments[i]
    if type(value) is not int and type(value) in argument.exact_types[0]:
        return value
    try:
        return cast(argument.real_type, value, argument.N, numbers)
    except Misfit as misfit:
        raise WrongCall(
            "{name}() Expected a value of type '{0.type}' for argument '{0.name}' but instead "
            "found type '{1}'.\nPosition: {2}\nValue: {3!r}\nDeclaration: {schema}\n"
            "{4}{5}",
            schema, argument, type_name(value).rpartition(".")[2], i, value,
            misfit.introduction, misfit) from None


def _unknown_argument(schema: FunctionSchema, positional: int, kwargs: dict[str, Any]) -> WrongCall:
    names = [argument.name for argument in schema.arguments]
    for name in kwargs:
        if name not in names:
            return WrongCall("Unknown keyword argument '{}' for operator '{name}'. "
                             "Schema: {schema}", schema, name)
    twice = next(name for name in kwargs if name in names[:positional])
    return WrongCall("Argument '{}' specified both as positional and keyword argument. "
                     "Schema: {schema}", schema, twice)


__all__ = ["WrongCall", "bind"]
