"""The schemas of PyTorch's `aten`, read from `schemas.txt` at first use."""
from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

_LONG = {"OPTIONS": "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
                    "bool? pin_memory=None",
         " OUT": ", *, Tensor(a!) out) -> Tensor(a!)"}


class Recorded(NamedTuple):
    """One overload: its schema, and tags and kinds of kernels by name."""
    line: str
    facts: tuple[str, ...]

    @property
    def schema(self) -> str:
        """The schema, in full."""
        text = self.line
        for short, long in _LONG.items():
            text = text.replace(short, long)
        return text


@cache
def recorded() -> dict[str, dict[str, Recorded]]:
    """The overloads of each name."""
    found: dict[str, dict[str, Recorded]] = {}
    for line in Path(__file__).with_name("schemas.txt").read_text().splitlines():
        schema, _, facts = line.partition("  # ")
        name, _, overload = schema[:schema.index("(")].partition(".")
        found.setdefault(name, {})[overload or "default"] = Recorded(schema, tuple(facts.split()))
    return found


def name_of(function: Any) -> str | None:
    """The name that the dispatcher has for a public function, which stands in its declaration; None
    for one that is written in Python, as most of `nn.functional`.

    >>> import flambeau.nn.functional as F
    >>> name_of(flambeau.linalg.svd), name_of(F.logsigmoid), name_of(F.relu)
    ('linalg_svd', 'log_sigmoid', None)
    """
    return getattr(getattr(function, "twin", None), "name", None)


def recorded_overload(name: str, overload: str) -> Recorded | None:
    """What is recorded of `aten::name.overload`."""
    return recorded().get(name, {}).get(overload)


__all__ = ["Recorded", "name_of", "recorded", "recorded_overload"]
