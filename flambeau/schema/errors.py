"""What a call is told that fits no signature, in PyTorch's words.

Programs match these texts, and people read them; both know PyTorch's. A call is bound once for each
overload, and what kept it from fitting is said of the only one, or listed for several.

>>> from flambeau.schema.signature import function_signature, parse
>>> flip = function_signature(parse("flip(Tensor self, int[] dims) -> Tensor"))
>>> too_many(flip, "flip", 4)
'flip() takes 2 positional arguments but 4 were given'
>>> missing(flip, "flip", 1)
'flip() missing 1 required positional arguments: "dims"'
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from flambeau._support.c_functions import type_name
from flambeau.schema.parser import Parameter
from flambeau.schema.signature import NUMPY_NAMES, Signature, title


def wrong_type(parameter: Parameter, value: Any, position: int = 0) -> str:
    """A value that does not fit; `position` counts from 1, and is 0 for one passed by name."""
    where = f" (position {position})" if position else ""
    found = f"not {type_name(value)}"
    if position and parameter.is_list and isinstance(value, (tuple, list)):
        found = f"but found element of type {type_name(value[0])} at pos 0"
    return f"argument '{parameter.name}'{where} must be {title(parameter)}, {found}"


def too_many(signature: Signature, name: str, count: int) -> str:
    positions, required = signature.positions, signature.required
    if required != positions:
        return (f"{name}() takes from {required} to {positions} positional arguments but {count} "
                "were given")
    return (f"{name}() takes {positions} positional argument{'' if positions == 1 else 's'} but "
            f"{count} {'was' if count == 1 else 'were'} given")


def missing(signature: Signature, name: str, first: int) -> str:
    """Arguments that must be given are not, from the parameter `first` on."""
    names = [f'"{p.name}"' for p in signature.parameters[first:] if p.default is None]
    return (f"{name}() missing {len(names)} required positional argument"
            f"{'s' if len(names) == 1 else ''}: {', '.join(names)}")        # so PyTorch has it


def unknown_name(signature: Signature, name: str, kwargs: dict[str, Any], count: int) -> str:
    """A keyword that is no parameter, or one for an argument that is also given by position."""
    names = [p.name for p in signature.parameters]
    for key in kwargs:
        standard = next((n for n, others in NUMPY_NAMES.items() if key in others), key)
        if key not in names and (standard not in names or standard in names[:count]
                                 or standard in kwargs):
            return f"{name}() got an unexpected keyword argument '{key}'"
        if key in names[:count]:
            return f"{name}() got multiple values for argument '{key}'"
    return f"{name}() got invalid keyword arguments"


def takes_nothing(name: str, count: int, named: bool, owner: str = "TensorBase") -> str:
    """Of a method that has no parameters at all; bound, it is said to be of the tensor's type."""
    return (f"{owner}.{name}() takes no keyword arguments" if named else
            f"{owner}.{name}() takes no arguments ({count} given)")


def takes_one(signature: Signature, name: str, count: int, named: bool) -> str:
    """Of a function, or a method, that has one parameter, of any type and without a name."""
    bound = signature.schema.parameters[0].name == "self"
    owner = "TensorBase" if bound else "torch._VariableFunctionsClass"
    return f"{owner}.{name}() takes no keyword arguments" if named else \
        f"{owner}.{name}() takes exactly one argument ({count} given)"


def no_instance(name: str, given: Sequence[Any]) -> str:
    """Of a method, taken from the class, whose first argument is no tensor."""
    if not given:
        return f"unbound method TensorBase.{name}() needs an argument"
    return (f"descriptor '{name}' for 'torch._C.TensorBase' objects doesn't apply to a "
            f"'{type_name(given[0])}' object")


def fits_none(name: str, signatures: Sequence[Signature], said: Sequence[str],
              args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    """The message for a call that fits none of the signatures, each of which has `said` why."""
    if [p.kind for s in signatures for p in s.parameters] == ["object"]:
        return takes_one(signatures[0], name, len(args), bool(kwargs))
    shown = [s for s in signatures if not s.is_deprecated]
    count = len(args) + len(kwargs)
    likely = [s for s in shown if s.required <= count <= len(s.parameters)]
    if len(signatures) == 1 or len(likely) == 1:
        return said[list(signatures).index((likely or signatures)[0])]
    return (f"{name}() received an invalid combination of arguments - "
            f"{_listing(shown, args, kwargs)}")


def _listing(shown: Sequence[Signature], args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    """What was given, and what would have been right. PyTorch reads its own text for it: to that
    the star is an argument as any, and one with a default is called as that and never fits."""
    named = [f"{key}={type_name(kwargs[key])}" for key in _in_hash_order(kwargs)]
    got = f"({', '.join([*map(type_name, args), *named, *(() if args or not named else ('',))])})"
    if len(shown) == 1:
        unknown = _unknown_names(shown[0], kwargs)
        if unknown:
            return f"got unrecognized keyword arguments: {', '.join(unknown)}"
        if _has_as_many(shown[0], args, kwargs):
            got = _mark_misfits(shown[0], args, kwargs)
        return f"got {got}, but expected {shown[0]}"
    text = f"got {got}, but expected one of:"
    for signature in shown:
        text += f"\n * {signature}"
        if _has_as_many(signature, args, kwargs):
            unknown = _unknown_names(signature, kwargs)
            text += "\n      didn't match because some of the " + (
                f"keywords were incorrect: {', '.join(unknown)}" if unknown else
                f"arguments have invalid types: {_mark_misfits(signature, args, kwargs)}")
    return f"{text}\n"


def _entries(signature: Signature) -> list[tuple[str, str]]:
    """The name and the type of each argument, as read from the text of the signature."""
    read = [("", "") if p.default is not None else (p.name, title(p))
            for p in signature.parameters]
    if signature.positions < len(read):
        read.insert(signature.positions, ("", ""))
    return read


def _has_as_many(signature: Signature, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    return len(_entries(signature)) == len(args) + len(kwargs)


def _unknown_names(signature: Signature, kwargs: dict[str, Any]) -> list[str]:
    known = {name for name, _ in _entries(signature)[-len(kwargs):]}
    return [key for key in _in_hash_order(kwargs) if key not in known]


def _in_hash_order(names: Iterable[str]) -> list[str]:
    from flambeau.schema.hash_order import in_hash_order  # only a refused call needs it

    return in_hash_order(names)


def _type_with_elements(value: Any) -> str:
    """The type of a value; of lists and tuples with the types of the elements."""
    if not isinstance(value, (list, tuple)):
        return type_name(value)
    items = ", ".join(map(type_name, value))
    return f"{type_name(value)} of " + (
        f"[{items}]" if isinstance(value, list) else f"({items}{',' * (len(value) == 1)})")


_ALSO = {"float": ("float", "int"), "int": ("int",)}


def _mark_misfits(signature: Signature, args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    """The types of the arguments, those that do not fit between exclamation marks."""
    entries = _entries(signature)
    positional = [("", value, entry[1]) for value, entry in zip(args, entries)]
    named = [(f"{name}=", kwargs[name], kind) for name, kind in entries[len(args):]]
    marks = [(prefix, _type_with_elements(value), type_name(value) in _ALSO.get(kind, (kind,)))
             for prefix, value, kind in positional + named]
    return f"({', '.join([p + (found if fits else f'!{found}!') for p, found, fits in marks])})"
