"""Ops with a kernel that are also made of other ops: what every transform runs, and what is
differentiated where no formula says the gradients.

The kernel is the way such an op usually runs, the parts are its meaning: tests hold the one against
the other.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._support.scopes import within
from flambeau.core import engine, late_bound
from flambeau.core.modes import grad_enabled, grad_mode
from flambeau.core.tensor import gradient_edge, tensor_types


class ThroughParts:
    """The gradients of an op, as the graph of its parts gives them, made from what the op saved:
    a formula of all canonical arguments."""

    def __init__(self, parts: Callable[..., Any], tensors: tuple[str, ...],
                 others: tuple[str, ...]):
        self.parts, self.count = parts, len(tensors)
        self.names = ("grad", "needs", *tensors, *others)

    def __call__(self, grad: Any, needs: list[bool], *given: Any) -> list[Any]:
        wanted = [i for i, needed in enumerate(needs) if needed]
        with_graph = grad_enabled()
        inputs, result = within(grad_mode, True, self.run, given, wanted)
        results = result if isinstance(result, tuple) else (result,)
        roots = [(gradient_edge(r), g) for r, g in zip(results, grad if type(grad) is list
                                                       else [grad])
                 if g is not None and type(r) in tensor_types and r.requires_grad]
        found = engine.run(roots, with_graph, with_graph,
                           [gradient_edge(inputs[i]) for i in wanted], accumulate=False)
        produced: list[Any] = [None] * self.count
        for i, gradient in zip(wanted, found):
            produced[i] = gradient
        return produced

    def run(self, given: tuple[Any, ...], wanted: list[int]) -> tuple[list[Any], Any]:
        """The arguments, with a history that begins at those that are wanted, and the results."""
        inputs = [late_bound.graph_alias(value) if i in wanted else value
                  for i, value in enumerate(given)]
        return inputs, self.parts(*inputs)


__all__ = ["ThroughParts"]
