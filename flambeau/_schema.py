"""Signatures of ops as PyTorch writes them: `mean.dim(Tensor self, int[1]? dim, ...) -> Tensor`."""
from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

MISSING: Any = object()


@dataclass(frozen=True)
class AliasInfo:
    """Which memory an argument or a result shares with others, and whether it is written to."""
    before_set: frozenset[str]
    is_write: bool

    @property
    def after_set(self) -> frozenset[str]:
        """The same: nothing changes hands."""
        return self.before_set


@dataclass(frozen=True)
class Argument:
    """One argument, or one result, of a schema."""
    name: str
    type: str
    default: Any = MISSING
    keyword_only: bool = False

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
        found = re.search(r"\((\w)(!?)[^)]*\)", self.type)
        return None if found is None else AliasInfo(frozenset({f"alias::{found[1]}"}),
                                                    found[2] == "!")

    @property
    def is_out(self) -> bool:
        """Is this where the result goes?"""
        return self.keyword_only and self.alias_info is not None and self.alias_info.is_write

    @property
    def is_tensor(self) -> bool:
        """Does it take a tensor, or several?"""
        return self.type.startswith("Tensor")


def parse_schema(schema: str) -> tuple[str, list[Argument], str]:
    """Name, arguments and result of "name(Tensor x, int n=2) -> Tensor"."""
    match = re.fullmatch(r"\s*([\w.:]*)\s*\((.*)\)\s*->\s*(.+?)\s*", schema, re.DOTALL)
    if match is None:
        raise RuntimeError(f"expected a schema like 'name(Tensor x, int n=2) -> Tensor', got "
                           f"{schema!r}")
    name, inside, result = match.groups()
    arguments, keyword_only = [], False
    for part in filter(None, (p.strip() for p in re.split(r",(?![^(\[]*[)\]])", inside))):
        if part == "*":
            keyword_only = True
            continue
        declared, equals, default = part.partition("=")
        kind, _, argument = declared.strip().rpartition(" ")
        arguments.append(Argument(argument, kind, _default(kind, default) if equals else MISSING,
                                  keyword_only))
    return name, arguments, result


def _default(kind: str, text: str) -> Any:
    try:
        value = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError):
        return text.strip()
    several = re.search(r"\[(\d+)\]", kind)
    return [value] * int(several[1]) if several and type(value) is int else value


class FunctionSchema:
    """The signature of one overload of an op."""

    def __init__(self, text: str, namespace: str = "aten"):
        self._text = " ".join(text.split())
        full, self.arguments, self.result = parse_schema(self._text)
        packet, _, self.overload_name = full.rpartition("::")[2].partition(".")
        self.name = f"{namespace}::{packet}"

    @cached_property
    def returns(self) -> list[Argument]:
        """The results."""
        inside = self.result[1:-1] if self.result.startswith("(") else self.result
        parts = [p.strip() for p in inside.split(",")] if inside else []
        return [Argument(*reversed(p.rpartition(" ")[::2])) if re.search(r"[\])\w] \w+$", p)
                else Argument("", p) for p in parts]

    @property
    def is_mutable(self) -> bool:
        """Does it write to any argument?"""
        return any(a.alias_info is not None and a.alias_info.is_write for a in self.arguments)

    def arranged(self, values: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Values for the arguments, in order, as they would be passed: without defaults at the
        end, and by name where they must be."""
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        needed = 0
        for argument, value in zip(self.arguments, values):
            if argument.type.rstrip("?").endswith("]") and isinstance(value, tuple):
                value = list(value)
            is_default = value is argument.default or (
                type(value) is type(argument.default) and not argument.is_tensor
                and value == argument.default)
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
        return f"{self.name.partition('::')[0]}::{self._text}"

    __repr__ = __str__


__all__ = ["MISSING", "AliasInfo", "Argument", "FunctionSchema", "parse_schema"]
