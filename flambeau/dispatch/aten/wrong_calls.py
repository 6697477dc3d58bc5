"""What is said of a call of `torch.ops` that fits no schema: PyTorch's dispatcher binds arguments
by rules, and in words, of its own.
"""
from __future__ import annotations

from typing import Any

from flambeau.core.tensor import Tensor
from flambeau.schema.function_schema import FunctionSchema
from flambeau.schema.types import ListType


def misfit(schemas: list[FunctionSchema], args: tuple[Any, ...], kwargs: dict[str, Any],
           is_overload: bool) -> RuntimeError | None:
    """The error of a call of an overload, or of an op of several; None if one of the schemas fits.

    >>> import flambeau
    >>> flambeau.ops.aten.relu6.default()
    Traceback (most recent call last):
    RuntimeError: aten::relu6() is missing value for argument 'self'. Declaration: \
aten::relu6(Tensor self) -> Tensor
    """
    reasons = [reason(schema, args, kwargs) for schema in schemas]
    if not reasons or None in reasons:
        return None
    if is_overload or len(reasons) == 1:
        return RuntimeError(reasons[0])
    return RuntimeError("Overloaded torch operator invoked from Python failed to match any schema:"
                        "\n" + "\n\n".join([str(said) for said in reasons]) + "\n\n")


def reason(schema: FunctionSchema, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """Why a call does not fit a schema, by number and names, and by which arguments are tensors;
    None if it does, as far as that goes."""
    name, declared = f"{schema.name}()", f"Declaration: {schema}"
    given, known = len(args) + len(kwargs), schema.arguments
    if given > len(known):
        return f"{name} expected at most {len(known)} argument(s) but received {given} " \
            f"argument(s). {declared}"
    places = [argument for argument in known if not argument.kwarg_only]
    if len(args) > len(places):
        return f"{name} takes {len(places)} positional argument(s) but {len(args)} was/were " \
            f"given.  {declared}"
    for i, argument in enumerate(known):
        if i < len(args) or argument.name in kwargs:
            value = args[i] if i < len(args) else kwargs[argument.name]
            kind: Any = argument.type
            no_tensor = argument.declared.partition("(")[0] == "Tensor" and not isinstance(
                value, Tensor | int | float | complex)
            no_list = isinstance(kind, ListType) and argument.N is None and not isinstance(
                value, list | tuple)
            if no_tensor or no_list:
                return f"{name} Expected a value of type '{kind}' for argument " \
                    f"'{argument.name}' but instead found type '{type(value).__name__}'.\n" \
                    f"Position: {i}\nValue: {value!r}\n{declared}\n" \
                    f"Cast error details: Unable to cast {value} to Tensor"
        elif not argument.has_default_value():
            return f"{name} is missing value for argument '{argument.name}'. {declared}"
    unknown = kwargs.keys() - {argument.name for argument in known[len(args):]}
    if unknown:
        return f"Unknown keyword argument '{min(unknown)}' for operator '{schema.name}'. " \
            f"Schema: {schema}"
    return None


__all__ = ["misfit", "reason"]
