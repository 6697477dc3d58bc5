"""Graphs for inputs of any size: traced with several sizes, numbers that differ are explained.

The function is traced with the sizes of the example, and again with other sizes for each of its
symbols. Where the traces are the same steps, numbers in them that differ are fitted by expressions
of the sizes, which the graph then computes. A size with which the function does something else, or
fails, stays what it is in the example.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.export._trace.sizes import Symbol, Unexplained, fit, tried
from flambeau.export.dynamic_shapes import int_oo
from flambeau.fx import Graph, GraphModule, Node
from flambeau.fx.node import map_aggregate
from flambeau.overrides import TorchFunctionMode
from flambeau.utils import _pytree as pytree


class _Inputs:
    """The leaves of the arguments, and the symbols for their sizes: equal sizes have one."""

    def __init__(self, args: tuple[Any, ...]):
        self.leaves, self.spec = pytree.tree_flatten(args)
        self.hints: dict[Symbol, int] = {}
        self.places: dict[Symbol, tuple[int, int | None]] = {}
        by_size: dict[int, Symbol] = {}
        self.shapes: list[Any] = []
        for i, leaf in enumerate(self.leaves):
            if isinstance(leaf, Tensor):
                self.shapes.append([self._symbol(n, by_size, i, d)
                                    for d, n in enumerate(leaf.shape)])
            elif type(leaf) is int:
                self.shapes.append(self._symbol(leaf, by_size, i, None))
            else:
                self.shapes.append(None)

    def _symbol(self, size: int, by_size: dict[int, Symbol], place: int, dim: int | None) -> Any:
        if size < 2:
            return size
        if size not in by_size:
            symbol = Symbol(f"s{len(by_size)}", size)
            by_size[size] = symbol
            self.hints[symbol], self.places[symbol] = size, (place, dim)
        return by_size[size]

    def sized(self, sizes: dict[Symbol, int]) -> tuple[Any, ...]:
        """Arguments of these sizes."""
        leaves = [leaf if shape is None else self._resized(leaf, shape, sizes)
                  for leaf, shape in zip(self.leaves, self.shapes)]
        return pytree.tree_unflatten(leaves, self.spec)

    @staticmethod
    def _resized(leaf: Any, shape: Any, sizes: dict[Symbol, int]) -> Any:
        if not isinstance(leaf, Tensor):
            return sizes.get(shape, shape)
        wanted = [sizes.get(n, n) for n in shape]
        if wanted == list(leaf.shape):
            return leaf
        order = sorted(range(leaf.ndim), key=lambda d: -leaf.stride(d))
        made = flambeau.empty([wanted[d] for d in order], dtype=leaf.dtype, device="meta")
        made = made.permute(sorted(range(leaf.ndim), key=order.__getitem__))
        return made.requires_grad_(leaf.requires_grad)


class SlicesOfAnySize(TorchFunctionMode):
    """Inside, a slice of a dimension whose size is a symbol is one, though it is that of all
    elements: nobody knows how many these are."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is not Tensor.__getitem__:
            return func(*args, **(kwargs or {}))
        x, index = args
        items = list(index) if isinstance(index, tuple) else [index]
        if not any(isinstance(item, slice) for item in items) or not all(
                item is None or item is Ellipsis or type(item) is int or (
                    isinstance(item, slice) and (item.step or 1) > 0) for item in items):
            return func(*args)
        dim = 0
        for place, item in enumerate(items):
            if item is Ellipsis:
                dim = x.dim() - sum(i is not None for i in items[place + 1:])
            elif item is None:
                x, dim = x.unsqueeze(dim), dim + 1
            elif type(item) is int:
                x = x.select(dim, item)
            else:
                if x.shape[dim] > 1 or item.start or item.stop is not None:
                    step = () if item.step in (None, 1) else (item.step,)
                    x = flambeau.ops.aten.slice.Tensor(
                        x, dim, item.start or 0, _END if item.stop is None else item.stop, *step)
                dim += 1
        return x


_END = 2 ** 63 - 1


def trace_sizes(tracer: Any, f: Callable[..., Any], args: tuple[Any, ...]) -> GraphModule:
    """The graph of a call in which numbers follow from the sizes of the inputs."""
    inputs = _Inputs(args)
    base = tracer.trace_once(f, args)
    runs, traces = [dict(inputs.hints)], [_steps(base.graph)]
    for symbol, hint in inputs.hints.items():
        for size in tried(hint, 2, int_oo)[:3]:
            sizes = {**inputs.hints, symbol: size}
            steps = _retraced(tracer, f, inputs, sizes)
            if steps is not None and _same_course(steps, traces[0]):
                runs.append(sizes)
                traces.append(steps)
    symbols = [s for s in inputs.hints if any(run[s] != inputs.hints[s] for run in runs)]
    joint = {s: next(run[s] for run in runs if run[s] != inputs.hints[s]) for s in symbols}
    steps = _retraced(tracer, f, inputs, {**inputs.hints, **joint}) if len(symbols) > 1 else None
    if steps is not None and _same_course(steps, traces[0]):
        runs.append({**inputs.hints, **joint})
        traces.append(steps)
    _Rewriter(base, inputs, symbols, runs, traces).rewrite()
    return base


def _retraced(tracer: Any, f: Any, inputs: _Inputs, sizes: dict[Symbol, int]) -> Any:
    try:
        return _steps(tracer.trace_once(f, inputs.sized(sizes)).graph)
    except (RuntimeError, ValueError, IndexError, AssertionError, NotImplementedError):
        return None


def _steps(graph: Graph) -> list[tuple[Any, list[int], Any]]:
    """What each node does, the numbers in its arguments, and the rest of these."""
    found = []
    for node in graph.nodes:
        numbers: list[int] = []

        def take(value: Any, numbers: list[int] = numbers) -> Any:
            if type(value) is int:
                numbers.append(value)
                return "number"
            return value.name if isinstance(value, Node) else value
        rest = map_aggregate((node.args, node.kwargs), take)
        found.append(((node.op, node.target), numbers, rest))
    return found


def _same_course(steps: Any, others: Any) -> bool:
    return len(steps) == len(others) and all(
        a[0] == b[0] and len(a[1]) == len(b[1]) and repr(a[2]) == repr(b[2])
        for a, b in zip(steps, others))


class _Rewriter:
    """Puts what computes them in place of numbers that follow from sizes."""

    def __init__(self, module: GraphModule, inputs: _Inputs, symbols: list[Symbol],
                 runs: list[dict[Symbol, int]], traces: list[Any]):
        self.module, self.inputs, self.symbols = module, inputs, symbols
        self.runs, self.traces = runs, traces
        self.placeholders = module.graph.find_nodes(op="placeholder")
        self.sizes: dict[Symbol, Node] = {}
        self.computed: dict[Any, Any] = {}

    def rewrite(self) -> None:
        """Change the graph."""
        for i, node in enumerate(list(self.module.graph.nodes)):
            if node.op == "placeholder" or not self.traces[0][i][1]:
                continue
            columns = list(zip(*[trace[i][1] for trace in self.traces]))
            if all(len(set(column)) == 1 for column in columns):
                continue
            found = iter([self._expression(list(column)) for column in columns])
            with self.module.graph.inserting_before(node):
                args, kwargs = map_aggregate(
                    (node.args, node.kwargs),
                    lambda v, found=found:  # type: ignore[misc]
                    self._value(next(found)) if type(v) is int else v)
            node.args, node.kwargs = args, kwargs
        self.module.recompile()

    def _expression(self, values: list[int]) -> Any:
        try:
            return fit(values, self.symbols, self.runs)
        except Unexplained:
            return values[0]

    def _value(self, expression: Any) -> Any:
        """The number, or the node that computes it."""
        if isinstance(expression, int):
            return expression
        if isinstance(expression, Symbol):
            return self._size(expression)
        key = repr(expression)
        if key not in self.computed:
            sizes = {s: self._size(s) for s in expression.symbols}
            self.computed[key] = expression.emit(
                lambda function, *values: self.module.graph.call_function(function, values), sizes)
        return self.computed[key]

    def _size(self, symbol: Symbol) -> Node:
        if symbol not in self.sizes:
            place, dim = self.inputs.places[symbol]
            source = self.placeholders[place]
            self.sizes[symbol] = source if dim is None else self.module.graph.create_size_node(
                source, dim)
        return self.sizes[symbol]


__all__ = ["SlicesOfAnySize", "trace_sizes"]
