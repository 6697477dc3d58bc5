"""Binding calls of `torch.ops.aten`, and what is said of one that fits no schema."""
from __future__ import annotations

from typing import Any

from flambeau.schema.dispatched import WrongCall, bind
from flambeau.schema.function_schema import MISSING, FunctionSchema


def fitted(overloads: list[tuple[FunctionSchema, tuple[str, ...]]], args: tuple[Any, ...],
           kwargs: dict[str, Any], is_overload: bool = False
           ) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call as the first overload that fits takes them; RuntimeError if none
    does. With each schema come the facts of its record.

    >>> import flambeau
    >>> flambeau.ops.aten.relu6.default()
    Traceback (most recent call last):
    RuntimeError: aten::relu6() is missing value for argument 'self'. Declaration: \
aten::relu6(Tensor self) -> Tensor
    """
    reasons: list[WrongCall] = []
    for schema, facts in overloads:
        try:
            values = bind(schema, args, kwargs, "numbers" in facts)
        except WrongCall as error:
            reasons.append(error)
            continue
        for i, value in enumerate(values):
            if value is None and schema.arguments[i].is_one_tensor:
                raise RuntimeError("Expected a proper Tensor but got None (or an undefined Tensor "
                                   f"in C++) for argument #{i} '{schema.arguments[i].name}'")
        return _arranged(schema, values)
    if is_overload or (len(reasons) == 1 and "scripted" not in overloads[0][1]):
        raise RuntimeError(str(reasons[0]))
    raise RuntimeError("Overloaded torch operator invoked from Python failed to match any schema:"
                       "\n" + "\n\n".join(map(str, reasons)) + "\n\n")


def _arranged(schema: FunctionSchema, values: list[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Values as they are passed: by name what must be, and what comes after one left out."""
    positional = next((i for i, value in enumerate(values)
                       if value is MISSING or schema.arguments[i].keyword_only), len(values))
    return tuple(values[:positional]), {
        argument.name: value for argument, value in zip(
            schema.arguments[positional:], values[positional:]) if value is not MISSING}


__all__ = ["fitted"]
