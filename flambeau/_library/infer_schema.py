"""The schema of an op, read from the type annotations of a function."""
from __future__ import annotations

import collections.abc
import inspect
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.schema.errors import type_name
from flambeau.types import Number

_NAMES: dict[Any, str] = {Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str",
                          flambeau.dtype: "ScalarType", flambeau.device: "Device"}
_SEQUENCES = (list, Sequence, collections.abc.Sequence)
_REPORT = "Please file an issue on GitHub so we can prioritize this."


def _schema_type(annotation: Any, mark: str = "") -> str | None:
    """The name of a type in schemas; None if it has none. `mark` is put to a tensor's."""
    if annotation is flambeau.SymInt:
        return "SymInt"
    if annotation in (Number, int | float | bool):
        return "Scalar"
    if annotation in _NAMES:
        name = _NAMES[annotation]
        return f"Tensor({mark})" if mark and name == "Tensor" else name
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        if set(args) == {int, float, bool}:
            return "Scalar"
        if type(None) in args:
            rest = tuple(a for a in args if a is not type(None))
            inner = _schema_type(rest[0] if len(rest) == 1 else typing.Union[rest],  # noqa: UP007
                                 mark)
            return inner and f"{inner}?"
    if origin in _SEQUENCES and args:
        inner = _schema_type(args[0], mark)
        return inner and f"{inner}[]"
    return None


def _result(returned: Any) -> str | None:
    if returned in (None, type(None)):
        return "()"
    if typing.get_origin(returned) is tuple:
        parts = [_result(r) for r in typing.get_args(returned)]
        return None if None in parts else f"({', '.join(map(str, parts))})"
    return _schema_type(returned) if type(None) not in typing.get_args(returned) else None


def _default(default: Any) -> str | None:
    """A default as schemas write it; None if they cannot."""
    if default is None or isinstance(default, (int, float, bool)):
        return str(default)
    if isinstance(default, str):
        return f'"{default}"'
    if isinstance(default, flambeau.dtype):
        return str(default).removeprefix("torch.")
    if isinstance(default, flambeau.device):
        return f'"{default}"'
    return None


def infer_schema(prototype_function: Callable[..., Any], /, *, mutates_args: Any,
                 op_name: str | None = None, tags: Any = ()) -> str:
    """The schema that the type annotations of a function say.

    `mutates_args` names the arguments that the function writes to; "unknown" stands for all.

    >>> from flambeau import Tensor
    >>> def f(x: Tensor, n: int, y: Tensor | None = None) -> Tensor: ...
    >>> infer_schema(f, mutates_args=())
    '(Tensor x, SymInt n, Tensor? y=None) -> Tensor'
    """
    if not hasattr(prototype_function, "__globals__"):
        raise AttributeError(f"'{type_name(prototype_function)}' object has no attribute "
                             "'__globals__'")
    signature = inspect.signature(prototype_function)
    unknown = mutates_args == "unknown"

    def wrong(message: str) -> ValueError:
        return ValueError(f"infer_schema(func): {message} Got func with signature {signature})")
    try:
        hints = typing.get_type_hints(prototype_function)
    except NameError as error:
        raise wrong(f"Unsupported type annotation: {error}. It is not a type.") from None
    parts: list[str] = []
    starred, seen = False, set()
    for i, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise wrong("We do not support positional-only args, varargs, or varkwargs.")
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            starred = True
            parts.append("*")
        if name not in hints:
            raise wrong(f"Parameter {name} must have a type annotation.")
        changed = unknown or name in mutates_args
        kind = _schema_type(hints[name], f"a{i}!" if changed else "")
        if kind is None:
            if typing.get_origin(hints[name]) is tuple:
                raise wrong(f"Parameter {name} has unsupported type {hints[name]}. We do not "
                            "support Tuple inputs in schema. As a workaround, please try to use "
                            f"List instead. For example, {_as_list(hints[name])}.\n\nThe valid "
                            f"types are: {_valid()}.")
            raise wrong(f"Parameter {name} has unsupported type {hints[name]}. The valid types "
                        f"are: {_valid()}.")
        if changed and not unknown:
            if not kind.startswith("Tensor"):
                raise wrong(f"Parameter {name} is in mutable_args but only Tensors or collections "
                            "of Tensors can be mutated")
            seen.add(name)
        default = parameter.default
        text = "" if default is parameter.empty else _default(default)
        if text is None:
            raise wrong(f"Parameter {name} has an unsupported default value type {type(default)}. "
                        f"{_REPORT}")
        parts.append(f"{kind} {name}" + (f"={text}" if text else ""))
    missing = set() if unknown else set(mutates_args) - seen
    if missing:
        raise wrong(f"{missing} in mutates_args were not found in the custom op's signature. "
                    f"mutates_args should contain the names of all args that the custom op "
                    "mutates, or just the string 'unknown' if you don't know.")
    returned = hints.get("return", signature.return_annotation)
    if returned is signature.empty:
        raise wrong("No return type annotation was provided. Please add one.")
    result = _result(returned)
    if result is None:
        raise wrong(f"Return has unsupported type {returned}. The valid types are: {_valid()}.")
    return f"{op_name or ''}({', '.join(parts)}) -> {result}"


def _as_list(hint: Any) -> Any:
    args = {a for a in typing.get_args(hint) if a is not ...}
    inner: Any = args.pop() if len(args) == 1 else typing.Union[tuple(args)]    # noqa: UP007
    return list[inner]


def _valid() -> list[Any]:
    return [*_NAMES]


__all__ = ["infer_schema"]
