"""What ops that take functions have in common: tracing the functions, and putting them into a
graph."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau._library.higher_order import HigherOrderOperator
from flambeau.fx import GraphModule
from flambeau.utils import _pytree


class UnsupportedAliasMutationException(RuntimeError):
    """A function given to an op writes to its inputs, or returns one."""

    def __init__(self, reason: str):
        super().__init__(reason)
        self.reason = reason


def flat_function(function: Callable[..., Any], spec: Any, seen: list[Any]) -> Callable[..., Any]:
    """A function of leaves that gives a tuple of leaves; the shape of its result goes to `seen`."""
    def flat(*leaves: Any) -> tuple[Any, ...]:
        found = function(*_pytree.tree_unflatten(list(leaves), spec))
        results, shape = _pytree.tree_flatten(found)
        seen.append(shape)
        return tuple(results)
    return flat


def reenter_make_fx(function: Callable[..., Any]) -> Callable[..., GraphModule]:
    """`make_fx` of a function, inside the tracer that is at work."""
    from flambeau.fx.experimental.proxy_tensor import disable_proxy_modes_tracing, make_fx

    def trace(*args: Any) -> GraphModule:
        with disable_proxy_modes_tracing():
            return make_fx(lambda *values: function(*values))(*args)
    return trace


def unique_graph_name(root: Any, prefix: str) -> str:
    """A name for a graph that a module does not have yet."""
    number = 0
    while hasattr(root, f"{prefix}_{number}"):
        number += 1
    return f"{prefix}_{number}"


def traced_call(mode: Any, op: HigherOrderOperator, functions: dict[str, Callable[..., Any]],
                examples: dict[str, tuple[Any, ...]], arrange: Callable[..., tuple[Any, ...]],
                run: Callable[[], Any]) -> Any:
    """Write down a call of `op`: the graphs of its functions become modules of the traced one."""
    from flambeau.fx.experimental.proxy_tensor import disable_proxy_modes_tracing
    tracer = mode.tracer
    graphs = {}
    for name, function in functions.items():
        graph = reenter_make_fx(function)(*examples[name])
        setattr(tracer.root, unique_graph_name(tracer.root, name), graph)
        graphs[name] = graph
    args = _pytree.tree_map_only(Tensor, tracer.unwrap_proxy, arrange(**graphs))
    proxy = tracer.create_proxy("call_function", op, args, {}, name=op.name())
    with disable_proxy_modes_tracing():
        found = run()
    from flambeau.fx.experimental._tracked import track_tensor_tree
    return track_tensor_tree(found, proxy, constant=None, tracer=tracer)


def check_tensors(values: Any, what: str) -> None:
    """RuntimeError unless all leaves are tensors or numbers."""
    if not isinstance(values, (tuple, list)) or any(
            not isinstance(v, (Tensor, int, float, bool)) for v in _pytree.tree_leaves(values)):
        raise RuntimeError("Expect operands to be a tuple of possibly nested dict/list/tuple that "
                           f"only consists of tensor leaves, but got {values}.")


def first_slice_copy(t: Tensor, dim: int = 0) -> Tensor:
    """The first slice along a dimension, as a tensor of its own."""
    return flambeau.select(t, dim, 0).clone()


__all__ = ["UnsupportedAliasMutationException", "first_slice_copy", "reenter_make_fx",
           "unique_graph_name"]
