"""Binding the arguments of a call of a registered op to its schema."""
from __future__ import annotations

from typing import Any

from flambeau.schema import dispatched
from flambeau.schema.function_schema import MISSING, FunctionSchema


def bind(schema: FunctionSchema, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """All arguments, in order, with defaults; RuntimeError if the call does not fit."""
    try:
        values = dispatched.bind(schema, args, kwargs)
    except dispatched.WrongCall as error:
        raise RuntimeError(str(error)) from None
    return tuple([argument.default if value is MISSING else value
                  for argument, value in zip(schema.arguments, values)])


def split(schema: FunctionSchema, values: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional and keyword arguments of a call, of the values of all arguments."""
    count = sum(not a.keyword_only for a in schema.arguments)
    return tuple(values[:count]), {
        a.name: v for a, v in zip(schema.arguments[count:], values[count:])}


__all__ = ["bind", "split"]
