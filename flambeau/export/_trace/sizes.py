"""Sizes as expressions of dynamic ones, found by running a program on inputs of several sizes.

A number that occurs in all runs of a program, differently, is an expression of the sizes that
differed: a sum of multiples, a product, or a quotient. Which one, the runs decide.

>>> s = Symbol("s77", hint=3)
>>> fit([6, 8, 10, 22], [s], [{s: 3}, {s: 4}, {s: 5}, {s: 11}])
2*s77
"""
from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from flambeau.export.dynamic_shapes import int_oo


@dataclass(frozen=True)
class Symbol:
    """A dynamic size, and what it is in the example."""
    is_symbolic: ClassVar[bool] = True
    name: str
    hint: int = field(compare=False)

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Expression:
    """`factor * product of powers of symbols`, summed up, `// divisor`."""
    is_symbolic: ClassVar[bool] = True
    terms: tuple[tuple[int, tuple[Symbol, ...]], ...]       # factor, symbols
    divisor: int = 1

    def value(self, sizes: dict[Symbol, int]) -> int:
        """What it is for these sizes."""
        return sum(factor * math.prod(sizes[s] for s in symbols)
                   for factor, symbols in self.terms) // self.divisor

    @property
    def plain(self) -> Symbol | Expression:
        """The symbol that it is, if it is one."""
        (factor, symbols), *rest = self.terms
        alone = factor == 1 and len(symbols) == 1 and not rest and self.divisor == 1
        return symbols[0] if alone else self

    @property
    def hint(self) -> int:
        """What it is in the example."""
        return self.value({s: s.hint for s in self.symbols})

    @property
    def symbols(self) -> list[Symbol]:
        """The symbols in it."""
        return list(dict.fromkeys(s for _, symbols in self.terms for s in symbols))

    def __repr__(self) -> str:
        parts = []
        for factor, symbols in sorted(self.terms, key=lambda t: not t[1]):
            names = [str(s) if n == 1 else f"{s}**{n}" for s, n in
                     ((s, symbols.count(s)) for s in sorted(set(symbols), key=str))]
            if abs(factor) != 1 or not names:
                names.insert(0, str(abs(factor)))
            sign = " - " if factor < 0 else " + "
            parts.append(sign + "*".join(names))
        text = "".join(parts)
        text = text.removeprefix(" + ")
        text = "-" + text.removeprefix(" - ") if text.startswith(" - ") else text
        return text if self.divisor == 1 else f"(({text})//{self.divisor})" \
            if len(self.terms) > 1 or "*" in text else f"({text}//{self.divisor})"

    def emit(self, call: Callable[..., Any], sizes: dict[Symbol, Any]) -> Any:
        """Compute it by calls `call(function, a, b)` from what stands for the symbols."""
        total = None
        for factor, symbols in self.terms:
            product = None
            for symbol in symbols:
                size = sizes[symbol]
                product = size if product is None else call(operator.mul, product, size)
            if product is None:
                product = factor
            elif factor != 1:
                product = call(operator.mul, product, factor)
            total = product if total is None else call(operator.add, total, product)
        return total if self.divisor == 1 else call(operator.floordiv, total, self.divisor)


class Unexplained(Exception):
    """A number that is no expression of the sizes."""


def fit(values: list[int], symbols: list[Symbol], runs: list[dict[Symbol, int]]
        ) -> int | Symbol | Expression:
    """The expression that is `values[i]` for the sizes `runs[i]`."""
    if all(v == values[0] for v in values):
        return values[0]
    for candidate in _candidates(values, symbols, runs):
        if all(candidate.value(run) == v for v, run in zip(values, runs)):
            return candidate.plain
    raise Unexplained(values)


def _candidates(values: list[int], symbols: list[Symbol], runs: list[dict[Symbol, int]]) -> Any:
    for count in range(1, len(symbols) + 1):
        for chosen in itertools.combinations_with_replacement(symbols, count):
            base = math.prod(runs[0][s] for s in chosen)
            if base and values[0] % base == 0 and values[0]:
                yield Expression(((values[0] // base, chosen),))
    affine = _affine(values, symbols, runs)
    if affine is not None:
        yield affine
    for symbol in symbols:
        for divisor in range(2, 17):
            yield Expression(((1, (symbol,)),), divisor)
            yield Expression(((1, (symbol,)), (divisor - 1, ())), divisor)
            rest = values[0] - (runs[0][symbol] - 1) // divisor
            yield Expression(((1, (symbol,)), (rest * divisor - 1, ())), divisor)
    for first, second in itertools.combinations(symbols, 2):
        for factor in range(1, 9):
            rest = values[0] - factor * runs[0][first] * runs[0][second]
            yield Expression(((factor, (first, second)), (rest, ())))


def _affine(values: list[int], symbols: list[Symbol], runs: list[dict[Symbol, int]]
            ) -> Expression | None:
    terms: list[tuple[int, tuple[Symbol, ...]]] = []
    for symbol in symbols:
        alone = next((i for i, run in enumerate(runs) if run[symbol] != runs[0][symbol]
                      and all(run[s] == runs[0][s] for s in symbols if s != symbol)), None)
        if alone is None:
            return None
        factor, rest = divmod(values[alone] - values[0], runs[alone][symbol] - runs[0][symbol])
        if rest:
            return None
        if factor:
            terms.append((factor, (symbol,)))
    constant = values[0] - sum(f * runs[0][s] for f, (s,) in terms)
    if constant:
        terms.append((constant, ()))
    return Expression(tuple(terms)) if terms else None


def tried(hint: int, low: int, high: int, derived: bool = False) -> list[int]:
    """Sizes to run a program with, besides that of the example: near it, and at the ends."""
    least = max(low, 2) if hint >= 2 else max(low, 1)
    wanted = [hint + 1, 3 * hint + 7, least, hint + 4, hint - 1]
    if high != int_oo:
        wanted.insert(1, high if high <= 4 * hint + 16 else 3 * hint + 7)
    fits = [n for n in dict.fromkeys(wanted) if least <= n <= high and n != hint]
    return fits[:4]


@dataclass
class ValueRange:
    """The bounds of a dynamic size."""
    lower: int
    upper: int

    def __repr__(self) -> str:
        return f"VR[{self.lower}, {self.upper!r}]"
