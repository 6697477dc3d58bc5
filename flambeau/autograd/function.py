"""`Function`: an op whose derivative the user writes.

The context that `forward` and `backward` get is the node of the graph, with attributes of its own.
"""
from __future__ import annotations

import functools
from typing import Any

from flambeau._support.own_methods import adopt
from flambeau.autograd.function_calls import FunctionMeta
from flambeau.autograd.function_calls import _SingleLevelFunction as _SingleLevelFunction
from flambeau.autograd.function_context import BackwardCFunction, FunctionCtx
from flambeau.autograd.function_levels import Function
from flambeau.autograd.grad_mode import no_grad
from flambeau.core import modes
from flambeau.core.autograd.graph import Node, next_order, output_edges
from flambeau.core.tensor import Tensor


def once_differentiable(fn: Any) -> Any:
    """A `backward` that cannot itself be differentiated: doing so raises RuntimeError."""
    @functools.wraps(fn)
    def wrapper(ctx: Any, *grads: Any) -> Any:
        with no_grad():
            produced = fn(ctx, *grads)
        if not modes.is_grad_enabled() or not any(
                isinstance(g, Tensor) and g.requires_grad for g in grads):
            return produced
        single = not isinstance(produced, tuple)
        results = _undifferentiable((produced,) if single else produced)
        return results[0] if single else results
    return wrapper


class Error(Node):
    """A node whose backward raises RuntimeError with a message."""

    __slots__ = ()
    frees = False

    def __init__(self, message: str):
        self.message = message

    def apply(self, grad: Any) -> Any:
        raise RuntimeError(self.message)

    def record(self, edges: tuple[Any, ...], results: list[Tensor]) -> None:
        """Become the history of `results`."""
        self.edges, self.saved, self.order = edges, (), next_order()
        self.outputs, self.simple = len(results), False
        self.results = [(t._array.shape, t._array.dtype) for t in results]
        self.shape, self.dtype = self.results[0]
        for tensor, edge in zip(results, output_edges(self)):
            tensor._edge = edge


def _undifferentiable(produced: tuple[Any, ...]) -> tuple[Any, ...]:
    """The gradients as outputs of one node that refuses to be differentiated."""
    results = [p.detach() if isinstance(p, Tensor) else p for p in produced]
    tensors = [r for r in results if isinstance(r, Tensor)]
    leaves = [r.detach().requires_grad_() if isinstance(r, Tensor) else None for r in results]
    Error("trying to differentiate twice a function that was marked with @once_differentiable"
          ).record(tuple(leaves), tensors)
    return tuple(results)


class InplaceFunction(Function):
    """Kept for old code: a Function whose constructor takes `inplace`."""

    def __init__(self, inplace: bool = False):
        super().__init__()
        self.inplace = inplace


class NestedIOFunction(Function):
    """Kept for old code: nested inputs and outputs of a Function are not supported."""

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("NestedIOFunction: pass tensors as separate arguments")


def traceable(function_class: Any) -> Any:
    """Marks a Function as traceable; nothing depends on it."""
    function_class.is_traceable = True
    return function_class


__all__ = ["BackwardCFunction", "Function", "FunctionCtx", "FunctionMeta", "InplaceFunction",
           "NestedIOFunction", "once_differentiable"]

adopt(globals(), "autograd.function_")
