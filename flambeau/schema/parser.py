"""Schemas as data: parsed once, at first use.

The notation is that of PyTorch's own `native_functions.yaml`, so that a schema can be compared with
PyTorch's as text. Only what declarations need is read: a type that no kernel takes is kept as its
name.

>>> schema = parse("cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)")
>>> schema.name, [p.name for p in schema.parameters], schema.result_names
('cummax', ['self', 'dim'], ('values', 'indices'))
>>> mul = parse("mul_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)")
>>> mul.overload, mul.parameters[0].is_written, mul.is_inplace
('Tensor', True, True)
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple


class _Missing:
    """The default of a parameter that must be given."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Any = _Missing()


class Parameter(NamedTuple):
    """One argument, or one result.

    kind        the type without brackets and marks: Tensor, Scalar, int, float, bool, ScalarType …
    size        of a list: how many elements a single value stands for, 0 for none; -1: no list
    nullable    is None a value?
    default     as text; None if the argument must be given
    by_name     does it stand after the `*`?
    alias       "a" of `Tensor(a)`: which memory it shares
    is_written  `Tensor(a!)`
    """
    name: str
    kind: str
    size: int = -1
    nullable: bool = False
    default: str | None = None
    by_name: bool = False
    alias: str = ""
    is_written: bool = False
    nullable_items: bool = False        # Tensor?[]
    is_symbolic: bool = False           # SymInt: decides the order of overloads, nothing else

    @property
    def is_list(self) -> bool:
        return self.size >= 0

    @property
    def is_tensor(self) -> bool:
        """Does it take a tensor, or several?"""
        return self.kind == "Tensor"

    @property
    def is_out(self) -> bool:
        """Is this where a result goes?"""
        return self.is_written and self.by_name

    @property
    def value(self) -> Any:
        """The default as an object; MISSING if there is none."""
        return MISSING if self.default is None else _parse_default(self.default, self.kind,
                                                                   self.size)


class Schema(NamedTuple):
    """One overload of an op."""
    name: str
    overload: str
    parameters: tuple[Parameter, ...]
    results: tuple[Parameter, ...]

    @property
    def full_name(self) -> str:
        return f"{self.name}.{self.overload}" if self.overload else self.name

    @property
    def result_names(self) -> tuple[str, ...]:
        """The fields of the named tuple that several results are."""
        return tuple(r.name for r in self.results) if len(self.results) > 1 else ()

    @property
    def outs(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.parameters if p.is_out)

    @property
    def is_inplace(self) -> bool:
        return bool(self.parameters) and self.parameters[0].is_written and not self.outs

    @property
    def is_view(self) -> bool:
        """Does a result look at an argument's memory, without writing to it?"""
        return any(r.alias for r in self.results) and not any(
            p.is_written for p in self.parameters)

    @property
    def is_factory(self) -> bool:
        """Does it make a tensor from nothing but sizes and numbers, with the usual options?"""
        names = [p.name for p in self.parameters]
        return "requires_grad" not in names and all(
            option in names for option in ("dtype", "layout", "device", "pin_memory"))


# The types that declarations name, and the Python values that stand for them in a call. `T?` takes
# None too, `T[]` a list or a tuple, `T[2]` also one value that stands for two.
TYPES = {
    "Tensor": "a tensor; a number too, where the declaration says `numbers=True`",
    "Scalar": "a number of any kind: bool, int, float, complex, or one of NumPy's",
    "int": "an integer, no bool; a tensor that holds a single one",
    "SymInt": "the same: PyTorch's mark of sizes",
    "float": "a real number: float, int, bool, or one of NumPy's",
    "bool": "True or False",
    "str": "a string",
    "ScalarType": "an element type (`flambeau.float32`), or one of Python's (`float`)",
    "Device": "a device, its name, or its index",
    "Layout": "a layout: `flambeau.strided`",
    "MemoryFormat": "a memory format: `flambeau.channels_last`",
    "Generator": "a `flambeau.Generator`",
    "Storage": "a storage: `x.untyped_storage()`",
    "Stream": "a stream, which is not looked at",
    "QScheme": "how a tensor is quantised: only as a result",
    "object": "anything: the body looks at it",
    "PyObject": "the same, as PyTorch has it in errors",
}

_COMMA = re.compile(r",\s*(?![^(\[{]*[)\]}])")          # not inside brackets
_TYPE = re.compile(r"(\w+)(\([^)]*\))?(\??)(\[\d*\])?(\??)")
_WORDS: dict[str, Any] = {"None": None, "True": True, "False": False, "Mean": 1,
                          "contiguous_format": None, "torch.strided": None, "long": None,
                          "inf": float("inf")}


# A type stands after a bracket, a comma or the arrow; single letters there are aliases.
_UNKNOWN_TYPE = re.compile(rf"[(,>] ?(?!(?:{'|'.join(TYPES)}|[a-z])\b)([A-Za-z]\w*)"
                           r"(?=[ \[?(,)]|$)")


def check_types(text: str) -> None:
    """Raise for a schema that names a type which is none of `TYPES`: it would fit any value.

    >>> check_types("flip(Tenser self, int[] dims) -> Tensor")
    Traceback (most recent call last):
    ValueError: flip: 'Tenser' is no type; did you mean 'Tensor'? ...
    """
    found = _UNKNOWN_TYPE.search(text)
    if found:
        from difflib import get_close_matches
        near = get_close_matches(found[1], TYPES, 1, 0.5)
        raise ValueError(
            f"{text.partition('(')[0]}: '{found[1]}' is no type"
            + (f"; did you mean '{near[0]}'?" if near else ".")
            + f" In the schema '{text}' a type is one of {', '.join(TYPES)}")


@cache
def parse(text: str) -> Schema:
    """Read a schema; the result may be left out.

    ValueError if the text is none.
    """
    head, arrow, after = text.rpartition("->")
    call, after = (head, after) if arrow and ")" in head else (text, "")
    name, bracket, inside = call.strip().partition("(")
    if not bracket or inside[-1:] != ")":
        raise ValueError("expected a schema like 'name(Tensor x, int n=2) -> Tensor', got "
                         f"{text!r}")
    base, _, overload = name.strip().rpartition("::")[2].partition(".")
    parameters = [_parse_parameter(*written) for written in split_arguments(inside[:-1])]
    return Schema(base, overload, tuple(parameters), _parse_results(after.strip()))


def split_arguments(inside: str) -> Iterator[tuple[str, str, str | None, bool]]:
    """Of each argument between the brackets of a schema its type, name and default as text (None
    if it must be given), and whether it stands after the `*`."""
    by_name = False
    for part in split_at_commas(inside):
        if part == "*":
            by_name = True
            continue
        declared, equals, default = part.partition("=")
        kind, _, name = declared.strip().rpartition(" ")
        yield kind.strip(), name, default.strip() if equals else None, by_name


def split_at_commas(text: str) -> list[str]:
    """What stands between commas that no bracket holds."""
    return [part.strip() for part in _COMMA.split(text) if part.strip()]


def _parse_results(text: str) -> tuple[Parameter, ...]:
    if not text or text == "()":
        return ()
    several = text[0] == "(" and text[-1] == ")"
    found = []
    for part in _COMMA.split(text[1:-1]) if several else [text]:
        kind, _, name = part.strip().rpartition(" ")
        found.append(_parse_parameter(kind, name) if kind else _parse_parameter(name, ""))
    return tuple(found)


def _parse_parameter(text: str, name: str, default: str | None = None,
                     by_name: bool = False) -> Parameter:
    match = _TYPE.fullmatch(text.replace(" ", ""))
    if match is None:               # types that no kernel of ours takes: Dict(str, Tensor)
        return Parameter(name, text, -1, text.endswith("?"), default, by_name)
    stem, alias, inner, listed, outer = match.groups()
    mark = (alias or "").strip("()")
    size = int(listed.strip("[]") or 0) if listed else -1
    return Parameter(name, "int" if stem == "SymInt" else stem, size,
                     bool(outer or (inner and not listed)) or default == "None", default, by_name,
                     mark.rstrip("!")[:1], "!" in mark, bool(inner and listed), stem == "SymInt")


def _parse_default(text: str, kind: str, size: int) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    if text[0] in "[{":
        return tuple(_parse_number(t) for t in text[1:-1].split(",") if t.strip())
    if text[0] in "\"'":
        return text[1:-1]
    value = _parse_number(text)
    if kind == "float":
        value = float(value)
    return (value,) * size if size > 0 else value


def _parse_number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)
