"""Names that come with a family of ops which has not been imported yet.

`import flambeau` imports the families that nearly every program needs; `ops.load` the others, when
something is asked for that is not there.
"""
from __future__ import annotations

from typing import Any


def find_missing(owner: Any, name: str) -> Any:
    """An attribute that a family of ops brings which has not been imported yet."""
    if name[0] != "_":
        for load in late_families:
            if load(lambda: name in vars(owner)):
                return getattr(owner, name)
    kind = owner.__name__ if isinstance(owner, type) else type(owner).__name__
    raise AttributeError(f"'{kind}' object has no attribute {name!r}")


late_families: list[Any] = []        # each imports families until what is asked for has come


class TensorMeta(type):
    """Finds methods that come with a family of ops which has not been imported yet."""

    def __getattr__(cls, name: str) -> Any:
        return find_missing(cls.__mro__[-2], name)
