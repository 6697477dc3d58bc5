"""Ops with a kernel that are also made of other ops: what every transform runs, and what is
differentiated where no formula says the gradients.

The kernel is the way such an op usually runs, the parts are its meaning: tests hold the one against
the other. So it is with a kernel of the gradients, which runs where no graph of them is wanted.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._support.scopes import within
from flambeau._support.source_locations import counter_of
from flambeau.core import late_bound
from flambeau.core.autograd import engine
from flambeau.core.autograd.formulas import parameters
from flambeau.core.autograd.graph import unpack
from flambeau.core.modes import grad_enabled, grad_mode, interceptors, levels
from flambeau.core.op import Op
from flambeau.core.tensor import alias, gradient_edge, plain_types, tensor_types, wrap


class CompositeBackward:
    """The gradients of an op, as the graph of its parts gives them, made from what the op saved:
    a formula of all canonical arguments.

    backward    a kernel that gives them too: of arrays for `grad` (a list, if the op has `several`
                differentiable results), `needs`, arguments and results
    """

    def __init__(self, parts: Callable[..., Any], tensors: tuple[str, ...],
                 others: tuple[str, ...], backward: Any = None, several: bool = False):
        self.parts, self.backward, self.several = parts, backward, several
        self.count = len(tensors)
        self.taken = None if backward is None else len(tensors) + len(others)   # the rest: results
        named, given = parameters(backward), ("grad", "needs", *tensors, *others)
        self.names = (*given, *[name for name in named if name not in given])
        self.order = [self.names.index(name) for name in named]

    def __call__(self, grad: Any, needs: list[bool], *given: Any) -> list[Any]:
        with_graph, grads = grad_enabled(), grad if type(grad) is list else [grad]
        if self.backward is not None and not with_graph and _needs_no_graph((*grads, *given)):
            return self.run_kernel(grads, needs, given)
        wanted = [i for i, needed in enumerate(needs) if needed]
        inputs, result = within(grad_mode, True, self.run, given[:self.taken], wanted)
        results = result if isinstance(result, tuple) else (result,)
        roots = [(gradient_edge(r), g) for r, g in zip(results, grads)
                 if g is not None and type(r) in tensor_types and r.requires_grad]
        found = engine.run(roots, with_graph, with_graph,
                           [gradient_edge(inputs[i]) for i in wanted], accumulate=False)
        produced: list[Any] = [None] * self.count
        for i, gradient in zip(wanted, found):
            produced[i] = gradient
        return produced

    def run(self, given: tuple[Any, ...], wanted: list[int]) -> tuple[list[Any], Any]:
        """The arguments, with a history that begins at those that are wanted, and the results."""
        inputs = [_require_grad(value) if i in wanted else value for i, value in enumerate(given)]
        return inputs, self.parts(*inputs)

    def run_kernel(self, grads: list[Any], needs: list[bool], given: tuple[Any, ...]) -> list[Any]:
        """The gradients that no graph is wanted of."""
        arrays = [None if g is None else g._array for g in grads]
        values = [arrays if self.several else arrays[0], needs,
                  *[v._array if type(v) in plain_types else v for v in given]]
        found = self.backward(*[values[i] for i in self.order])
        return [None if g is None else wrap(g)
                for g in (found if type(found) is tuple else (found,))]


def _require_grad(value: Any) -> Any:
    """The tensor, as one that has a gradient."""
    alias = late_bound.graph_alias(value)
    return alias if alias.requires_grad else alias.requires_grad_()


def _needs_no_graph(values: tuple[Any, ...]) -> bool:
    """Are these plain tensors, of which no level asks how their gradients come about?"""
    return all(type(v) in plain_types or type(v) not in tensor_types for v in values) and (
        not interceptors or all(level.observes for level in levels.get()))


def expose_parts(op: Op) -> None:
    """Let users see the nodes of its parts in place of those of an op."""
    count = len(op.tensors) + len(op.params)

    def unfold(node: Any) -> Any:
        given = [unpack(node, i) for i in range(count)]
        for i, edge in enumerate(node.edges):
            if edge is not None:
                again = alias(given[i]._array, type(given[i]))
                again._counter, again._edge = counter_of(given[i]), edge
                given[i] = again
        found = within(grad_mode, True, op.parts, *given)
        return gradient_edge(found[0] if isinstance(found, tuple) else found)
    op.Backward.unfold = unfold


__all__ = ["CompositeBackward", "expose_parts"]
