"""Types of values, for the graph."""
from __future__ import annotations

from typing import Any

from flambeau.fx.proxy import Proxy


def annotate(val: Any, type: type) -> Any:
    """Say of which type a value is: its node keeps it. What is no proxy is given back.

    >>> annotate(3, int)
    3
    """
    if isinstance(val, Proxy):
        if val.node.type:
            raise RuntimeError(f"Tried to annotate a value that already had a type on it! Existing "
                               f"type is {val.node.type} and new type is {type}. This could happen "
                               "if you tried to annotate a function parameter value (in which case "
                               "you should use the type slot on the function signature) or you "
                               "called annotate on the same value twice")
        val.node.type = type
    return val


__all__ = ["annotate"]
