"""Types of the parts that nodes take out of containers."""
from __future__ import annotations

import operator
import typing

from flambeau.fx import Graph


def annotate_getitem_nodes(graph: Graph) -> None:
    """Give each `getitem` node the type of the part, where that of the whole is known."""
    for node in graph.find_nodes(op="call_function", target=operator.getitem):
        sequence, index = node.args
        kind = sequence.type
        if kind is None or not isinstance(index, int):
            continue
        args = typing.get_args(kind)
        origin = typing.get_origin(kind)
        if origin is tuple and len(args) == 2 and args[1] is ...:
            node.type = args[0]
        elif origin is tuple and index < len(args):
            node.type = args[index]
        elif origin is list and args:
            node.type = args[0]
        elif hasattr(kind, "_fields") and hasattr(kind, "__annotations__"):
            node.type = kind.__annotations__[kind._fields[index]]


__all__ = ["annotate_getitem_nodes"]
