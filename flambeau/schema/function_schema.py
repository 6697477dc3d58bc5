"""Signatures of ops as PyTorch writes them: `mean.dim(Tensor self, int[1]? dim, ...) -> Tensor`."""
from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from flambeau.schema import types as kinds
from flambeau.schema.parser import MISSING, split_arguments, split_at_commas


@dataclass(frozen=True)
class AliasInfo:
    """Which memory an argument or a result shares with others, and whether it is written to."""
    before_set: frozenset[str]
    is_write: bool
    after_set: frozenset[str]


@cache
def _alias_info(declared: str) -> AliasInfo | None:
    found = re.search(r"\w\((\w[\w|]*)(!?)( -> \*)?\)", declared)
    if found is None or found[0].startswith("Dict"):
        return None
    before = frozenset(found[1].split("|"))
    return AliasInfo(before, found[2] == "!", frozenset("*") if found[3] else before)


@dataclass(frozen=True)
class Argument:
    """One argument, or one result, of a schema."""
    name: str
    declared: str                           # the type, as the schema writes it
    default: Any = MISSING
    keyword_only: bool = False

    @cached_property
    def type(self) -> kinds.Type:
        """The type; numbers that stand for element types and layouts are `int`."""
        return parse_type(self.declared)

    @cached_property
    def exact_types(self) -> tuple[frozenset[Any], frozenset[Any]]:
        """The classes whose instances, subclasses aside, are values as they are; and of lists,
        those of their elements."""
        written = re.sub(r"\([^)]*\)", "", self.declared)
        optional = (type(None),) if written.endswith("?") else ()
        element, is_list, _ = written.removesuffix("?").partition("[")
        found = _exact_types().get(element, ())
        return (frozenset([*optional, *([] if is_list else found)]),
                frozenset(found if is_list else []))

    @cached_property
    def real_type(self) -> kinds.Type:
        """The type, `SymInt`, `ScalarType` and `Layout` told from numbers."""
        return parse_type(self.declared, real=True)

    @cached_property
    def N(self) -> int | None:
        """The length of a list that one number can stand for; None if there is none."""
        found = re.search(r"\[(\d+)\]\??$", self.declared)
        return None if found is None else int(found[1])

    @cached_property
    def is_one_tensor(self) -> bool:
        """Is it a tensor, and not a list, and never None?"""
        return self.declared.partition("(")[0] == "Tensor" and self.declared[-1] not in "?]"

    @property
    def default_value(self) -> Any:
        """The default; None if there is none."""
        return None if self.default is MISSING else self.default

    @property
    def kwarg_only(self) -> bool:
        """Must it be passed by name?"""
        return self.keyword_only

    def has_default_value(self) -> bool:
        """May it be left out?"""
        return self.default is not MISSING

    @property
    def alias_info(self) -> AliasInfo | None:
        """What `(a!)` says in the type."""
        return _alias_info(self.declared)

    @property
    def is_write(self) -> bool:
        """Is this written to?"""
        return self.alias_info is not None and self.alias_info.is_write

    @property
    def is_out(self) -> bool:
        """Is this where the result goes?"""
        return self.keyword_only and self.is_write

    @property
    def is_tensor(self) -> bool:
        """Does it take a tensor, or several?"""
        return self.declared.startswith("Tensor")


# the names of types in schemas, and of their classes
_KINDS = {
    "Tensor": "Tensor", "int": "Int", "SymInt": "SymInt", "float": "Float", "bool": "Bool",
    "SymBool": "SymBool", "complex": "Complex", "str": "String", "Scalar": "Number", "Any": "Any",
    "Device": "DeviceObj", "Stream": "StreamObj", "PyObject": "PyObject", "NoneType": "None",
    "()": "None"}
_WITHOUT_CLASS = {**{name: f"{name}Type" for name in (
    "ScalarType", "Layout", "MemoryFormat", "QScheme", "Storage")}, "AnyEnumType": "AnyEnumType"}
# what stands for them where nobody asks for the real type
_STAND_FOR = {"SymInt": "int", "SymBool": "bool", "SymFloat": "float", "ScalarType": "int",
              "Layout": "int", "MemoryFormat": "int", "Dimname": "str", "number": "Scalar"}


@cache
def parse_type(declared: str, real: bool = False) -> kinds.Type:
    """The type that a schema writes, marks of aliases left out; `real` tells sizes, element types
    and layouts from numbers.

    >>> kind = parse_type("SymInt[2]?", real=True)
    >>> kind, kind.str(), kind.getElementType().getElementType().kind()
    (Optional[List[int]], 'SymInt[]?', 'SymIntType')
    """
    text = re.sub(r"(?<!Future)(?<!RRef)(?<!Await)\((\w[\w|]*!?|\*)( -> [\w*|]+)?\)", "",
                  declared).strip()
    if text.endswith("?"):
        return kinds.OptionalType(parse_type(text[:-1], real))
    found = re.fullmatch(r"(.+)\[\d*\]", text)
    if found:
        return kinds.ListType(parse_type(found[1], real))
    found = re.fullmatch(r"(Future|RRef|Await)\((.+)\)", text)
    if found:
        return getattr(kinds, f"{found[1]}Type")(parse_type(found[2], real))
    found = re.fullmatch(r"Dict\(([^,]+),\s*(.+)\)", text)
    if found:
        return kinds.DictType(parse_type(found[1], real), parse_type(found[2], real))
    if text.startswith("(") and text.endswith(")") and text != "()":
        return kinds.TupleType([parse_type(part, real) for part in split_at_commas(text[1:-1])])
    text = text if real else _STAND_FOR.get(text, text)
    if text in _KINDS:
        return getattr(kinds, f"{_KINDS[text]}Type").get()
    if text == "Generator":
        return kinds._GeneratorType.get()
    if text in _WITHOUT_CLASS:
        return kinds.Type._new(_name=text, _kind=_WITHOUT_CLASS[text])
    if text[:1].islower():                      # it stands for any type
        return kinds.Type._new(_name=text, _kind="VarType")
    return kinds.ClassType._new(_name=text)


def parse_schema(schema: str) -> tuple[str, list[Argument], str]:
    """Name, arguments and result of "name(Tensor x, int n=2) -> Tensor"."""
    match = re.fullmatch(r"\s*([\w.:]*)\s*\((.*)\)\s*->\s*(.+?)\s*", schema, re.DOTALL)
    if match is None:
        raise RuntimeError(_syntax_error(schema.strip()))
    name, inside, result = match.groups()
    arguments = [Argument(argument, kind,
                          MISSING if default is None else _parse_default(kind, default),
                          keyword_only)
                 for kind, argument, default, keyword_only in split_arguments(inside)]
    return name, arguments, result


def _format_argument(part: str) -> str:
    """An argument with its default as PyTorch writes it: `float x=2.`, `str s="x"`."""
    declared, equals, default = part.partition("=")
    return f"{declared.strip()}={_format_default(declared, default.strip())}" if equals else part


def _format_default(declared: str, default: str) -> str:
    if declared.startswith("Device"):
        return default.strip("\"'")
    if declared.startswith("ScalarType") and default in _NAMED_DEFAULTS:
        return str(_NAMED_DEFAULTS[default])
    if default[:1] == "'":
        return f'"{default[1:-1]}"'
    if default[:1] == "[":
        inside = split_at_commas(default[1:-1])
        return f"[{', '.join(_format_default(declared, each) for each in inside)}]"
    is_float = declared.startswith("float") or (
        declared.startswith("Scalar") and re.search(r"[.e]", default))
    if is_float and re.fullmatch(r"[-+\d.e]+", default):
        digits = f"{float(default):.17g}"
        return digits if re.search(r"[.e]", digits) else f"{digits}."
    return default


def _syntax_error(schema: str) -> str:
    """What is wrong with a schema that cannot be read."""
    if "(" not in schema:
        return "Tried to parse a function schema but only the operator name was given"
    if "->" not in schema:
        return f"expected arrow but found 'eof' here:\n{schema}\n{' ' * len(schema)}~ <--- HERE\n"
    return f"expected a schema like 'name(Tensor x, int n=2) -> Tensor', got {schema!r}"


ELEMENT_TYPES = (              # in the order of their numbers
    "uint8 int8 int16 int32 int64 float16 float32 float64 complex32 complex64 complex128 bool "
    "qint8 quint8 qint32 bfloat16 quint4x2 quint2x4 bits1x8 bits2x4 bits4x2 bits8 bits16 "
    "float8_e5m2 float8_e4m3fn float8_e5m2fnuz float8_e4m3fnuz uint16 uint32 uint64").split()
_NAMED_DEFAULTS = {
    "Mean": 1, "contiguous_format": 0, "strided": 0, "float8_e8m0fnu": 44,
    **{name: number for number, name in enumerate(ELEMENT_TYPES)},
    "short": 2, "int": 3, "long": 4, "half": 5, "float": 6, "double": 7, "chalf": 8, "cfloat": 9,
    "cdouble": 10}


def _parse_default(kind: str, text: str) -> Any:
    try:
        value = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError):
        return _NAMED_DEFAULTS.get(text.strip(), text.strip())
    several = re.search(r"\[(\d+)\]", kind)
    return [value] * int(several[1]) if several and type(value) is int else value


@cache
def _exact_types() -> dict[str, tuple[type, ...]]:
    from flambeau.core.devices import device
    from flambeau.core.dtypes import dtype
    from flambeau.core.tensor import Tensor
    from flambeau.core.type_info import layout, memory_format
    return {"Tensor": (Tensor,), "float": (float,), "int": (int,), "SymInt": (int,),
            "bool": (bool,), "str": (str,), "Scalar": (int, float, bool, complex),
            "ScalarType": (dtype,), "Device": (device,), "Layout": (layout,),
            "MemoryFormat": (memory_format,)}


def _is_exactly(value: Any, types: tuple[frozenset[Any], frozenset[Any]]) -> bool:
    kind = type(value)
    if kind in types[0]:
        return kind is not int or -2 ** 63 <= value < 2 ** 63
    if kind is not list and kind is not tuple:
        return False
    elements = types[1]
    for element in value:
        kind = type(element)
        if kind not in elements or (kind is int and not -2 ** 63 <= element < 2 ** 63):
            return False
    return bool(elements)


class FunctionSchema:
    """The signature of one overload of an op."""

    def __init__(self, text: str, namespace: str = "aten"):
        self._text = " ".join(text.split())
        full, self.arguments, self.result = parse_schema(self._text)
        space, separator, rest = full.rpartition("::")
        packet, _, self.overload_name = rest.partition(".")
        space = space if separator else namespace
        self.name = f"{space}::{packet}" if space else packet
        self._text = self._text.removeprefix(f"{space}::")

    @cached_property
    def returns(self) -> list[Argument]:
        """The results."""
        inside = self.result[1:-1] if self.result.startswith("(") else self.result
        return [Argument(*reversed(p.rpartition(" ")[::2])) if re.search(r"[\])\w] \w+$", p)
                else Argument("", p) for p in split_at_commas(inside)]

    @cached_property
    def _exactly(self) -> tuple[Any, ...]:
        """What `takes_exactly` asks for: types, how many by position, places, what is needed."""
        exact = [argument.exact_types for argument in self.arguments]
        return (exact, sum(not argument.keyword_only for argument in self.arguments),
                {argument.name: i for i, argument in enumerate(self.arguments)},
                [(i, argument.name) for i, argument in enumerate(self.arguments)
                 if not argument.has_default_value()])

    def takes_exactly(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Is each value of the very type that stands in the schema? Then there is nothing to
        convert or to refuse. (False says nothing: most values can be converted.)

        >>> sums = FunctionSchema("sum(Tensor? x, int[1] dim, bool keepdim=False) -> Tensor")
        >>> sums.takes_exactly((None, [0]), {}), sums.takes_exactly((None, 0), {})
        (True, False)
        """
        exact, positional, places, needed = self._exactly
        given = len(args)
        if given > positional:
            return False
        for value, types in zip(args, exact):
            if not _is_exactly(value, types):
                return False
        for name, value in kwargs.items():
            i = places.get(name, -1)
            if i < given or not _is_exactly(value, exact[i]):
                return False
        return all(i < given or name in kwargs for i, name in needed)

    @property
    def is_mutable(self) -> bool:
        """Does it write to any argument?"""
        return any(a.is_write for a in self.arguments)

    def arranged(self, values: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Values for the arguments, in order, as they would be passed: without defaults at the
        end, and by name where they must be."""
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        needed = 0
        for argument, value in zip(self.arguments, values):
            if argument.declared.rstrip("?").endswith("]") and isinstance(value, tuple):
                value = list(value)
            is_default = argument.has_default_value() and (value is argument.default or (
                type(value) is type(argument.default) and not argument.is_tensor
                and value == argument.default))
            if argument.keyword_only:
                if not is_default:
                    kwargs[argument.name] = value
                continue
            args.append(value)
            if not is_default:
                needed = len(args)
        return args[:needed], kwargs

    def bound(self, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
        """The values of all arguments of a call, with defaults."""
        given = list(args)
        return [given.pop(0) if given and not a.keyword_only
                else kwargs.get(a.name, a.default_value) for a in self.arguments]

    def __str__(self) -> str:
        space, separator, _ = self.name.rpartition("::")
        return f"{space}{separator}{self._shown}"

    @cached_property
    def _shown(self) -> str:
        name, bracket, rest = self._text.partition("(")
        inside, end, result = rest.rpartition("->")
        close = inside.rindex(")")
        written = ", ".join(map(_format_argument, split_at_commas(inside[:close])))
        return f"{name}{bracket}{written}) {end}{result}"

    __repr__ = __str__


__all__ = ["ELEMENT_TYPES", "MISSING", "AliasInfo", "Argument", "FunctionSchema", "parse_schema",
           "parse_type"]
