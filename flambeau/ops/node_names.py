"""Composites whose results bear the name of one node, as in PyTorch, where they are one op.

What a composite records is the graph of its parts. The node that made the result is then known
under the name that PyTorch's only node has; the parts lie behind it.

>>> from flambeau.core.op import composite
>>> @composite()
... @one_node
... def twice(input):
...     return input + input
>>> twice(flambeau.ones(1, requires_grad=True))
tensor([2.], grad_fn=<TwiceBackward0>)
"""
from __future__ import annotations

import functools
from typing import Any

from flambeau.core import fast
from flambeau.core.graph import next_order
from flambeau.core.modes import grad_enabled
from flambeau.core.op import class_name, publish
from flambeau.core.tensor import tensor_types


@functools.cache
def known_as(cls: type, name: str) -> type:
    return type(name, (cls,), {"__slots__": (), "__module__": cls.__module__})


def rename(result: Any, name: str, since: int, **shown: Any) -> None:
    """Give the node that made `result`, if that is newer than `since`, a name, and saved values
    that it is to show."""
    node = result.grad_fn if grad_enabled() and type(result) in tensor_types else None
    if node is not None and node.order < since:
        node.__class__ = known_as(type(node), name)
        for key, value in shown.items():
            node.__dict__[f"_saved_{key}"] = value


def one_node(body: Any = None, *, name: str = "") -> Any:
    """Decorate the body of a composite: the nodes of its results bear its name, or `name`."""
    if body is None:
        return functools.partial(one_node, name=name)
    title = name or class_name(body.__name__)

    @functools.wraps(body)
    def run(*args: Any, **kwargs: Any) -> Any:
        since = next_order()
        result = body(*args, **kwargs)
        for one in result if isinstance(result, tuple | list) else (result,):
            rename(one, title, since)
        return result
    return run


def number_nodes(op: Any, second: str, first: str = "") -> Any:
    """Publish a pointwise op again, so that its nodes have names of their own where the second
    argument is a number, or the first."""
    call = op.function

    def function(input: Any, other: Any, *, out: Any = None) -> Any:
        since = next_order()
        result = call(input, other) if out is None else call(input, other, out=out)
        if type(other) not in tensor_types:
            rename(result, second, since)
        elif first and type(input) not in tensor_types:
            rename(result, first, since)
        return result
    function = fast.callable_of("closure", op, functools.update_wrapper(function, call))
    op.function = function
    publish(op, function, True, ())
    return function


__all__ = ["known_as", "number_nodes", "one_node", "rename"]
