"""Binding calls of `torch.ops.aten`, and what is said of one that fits no schema."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau import Tensor
from flambeau.core.promotion import c_name
from flambeau.ops.coercion import resize_output
from flambeau.schema.dispatched import WrongCall, bind
from flambeau.schema.function_schema import MISSING, FunctionSchema


def fitted(overloads: list[tuple[FunctionSchema, tuple[str, ...]]], args: tuple[Any, ...],
           kwargs: dict[str, Any], is_overload: bool = False
           ) -> tuple[FunctionSchema, tuple[Any, ...], dict[str, Any]]:
    """The first schema that fits, and the arguments as it takes them; RuntimeError if none does.
    With each schema come the facts of its record.

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
        return schema, *_as_passed(schema, values)
    if is_overload or (len(reasons) == 1 and "scripted" not in overloads[0][1]):
        raise RuntimeError(str(reasons[0]))
    raise RuntimeError("Overloaded torch operator invoked from Python failed to match any schema:"
                       "\n" + "\n\n".join(map(str, reasons)) + "\n\n")


def _as_passed(schema: FunctionSchema, values: list[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Values as they are passed: by name what must be, and what comes after one left out."""
    positional = next((i for i, value in enumerate(values)
                       if value is MISSING or schema.arguments[i].keyword_only), len(values))
    return tuple(values[:positional]), {
        argument.name: value for argument, value in zip(
            schema.arguments[positional:], values[positional:]) if value is not MISSING}


def store(schema: FunctionSchema, function: Callable[..., Any], args: tuple[Any, ...],
          kwargs: dict[str, Any]) -> Any:
    """Run an overload that PyTorch generates of a functional one: what that gives is copied into
    `out=`, which has its type already.

    >>> import flambeau
    >>> out = flambeau.empty(0)
    >>> flambeau.ops.aten.roll.out(flambeau.arange(3.0), [1], out=out) is out, out
    (True, tensor([2., 0., 1.]))
    """
    outs = [kwargs.pop(argument.name) for argument in schema.arguments if argument.is_out]
    results = function(*args, **kwargs)
    for out, result in zip(outs, results if len(outs) > 1 else [results]):
        for place, value in zip(out, result) if isinstance(out, list | tuple) else [(out, result)]:
            _copy_into(place, value)
    return tuple(outs) if len(outs) > 1 else outs[0] if schema.returns else None


def _copy_into(out: Tensor, result: Tensor) -> None:
    if out.shape != result.shape:
        resize_output(out, tuple(result.shape))
    if out.dtype is not result.dtype:
        raise RuntimeError(f"Expected out tensor to have dtype {c_name(result.dtype)}, but got "
                           f"{c_name(out.dtype)} instead")
    if out.is_meta and not result.is_meta:
        raise RuntimeError(f"Attempting to copy from device {result.device} to device "
                           f"{out.device}, but cross-device copies are not allowed!")
    if out.device != result.device:
        raise RuntimeError(f"Expected out tensor to have device {result.device}, but got "
                           f"{out.device} instead")
    out.copy_(result)


__all__ = ["fitted", "store"]
