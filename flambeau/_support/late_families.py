"""Names that come with a family of ops which has not been imported yet.

`import flambeau` imports the families that nearly every program needs; `ops.load` the others, when
something is asked for that is not there.
"""
from __future__ import annotations

from typing import Any


def find_missing(owner: Any, name: str, asked: Any = None) -> Any:
    """An attribute that a family of ops brings which has not been imported yet; the error names
    the type of the object that was `asked`, if that is another one."""
    if name[0] != "_":
        for load in late_families:
            if load(lambda: name in vars(owner)):
                return getattr(owner, name)
    asked = owner if asked is None else asked
    who = f"type object '{asked.__name__}'" if isinstance(asked, type) \
        else f"'{type(asked).__name__}' object"
    raise AttributeError(f"{who} has no attribute {name!r}", name=name, obj=asked)


late_families: list[Any] = []        # each imports families until what is asked for has come


class TensorMeta(type):
    """Finds methods that come with a family of ops which has not been imported yet."""

    def __getattr__(cls, name: str) -> Any:
        return find_missing(cls.__mro__[-2], name, cls)
