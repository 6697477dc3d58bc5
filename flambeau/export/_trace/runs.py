"""Runs the program at several sizes, and explains by them the numbers that it computes."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau import Tensor, nn
from flambeau._dynamo.exc import UserError
from flambeau.export._trace import capture, overloads
from flambeau.export._trace.inputs import Inputs, Sizes, _resized
from flambeau.export._trace.sizes import Symbol, Unexplained, fit, tried
from flambeau.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from flambeau.utils import _pytree

# ---- running the program ------------------------------------------------------------------------

class Program:
    """A module with its state under the names of the graph's inputs."""

    def __init__(self, module: nn.Module, inputs: Inputs):
        self.module, self.inputs = module, inputs
        self.parameters = dict(module.named_parameters())
        self.buffers = dict(module.named_buffers())
        persistent = module.state_dict(keep_vars=True)
        self.persistent = {name for name in self.buffers if name in persistent}
        self.constants: dict[int, str] = {}
        for path, inner in module.named_modules():
            for name, value in vars(inner).items():
                if isinstance(value, Tensor):
                    self.constants.setdefault(id(value), f"{path}.{name}" if path else name)

    def _state(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Copies of the state: by its names, and by those of the graph's inputs."""
        by_name, by_input = {}, {}
        for prefix, state in (("p", self.parameters), ("b", self.buffers)):
            for name, value in state.items():
                made = value.detach().clone().requires_grad_(value.requires_grad)
                by_name[name] = made
                by_input[f"{prefix}_{name.replace('.', '_')}"] = made
        return by_name, by_input

    def run(self, leaves: list[Any]) -> capture.Trace:
        """A trace of the program on these inputs; its state stays what it is."""
        by_name, by_input = self._state()
        copies = [v.detach().clone().requires_grad_(v.requires_grad) if isinstance(v, Tensor)
                  else v for v in leaves]
        for name, value in zip(self.inputs.names, copies):
            if isinstance(value, Tensor):
                by_input[name] = value
        args, kwargs = _pytree.tree_unflatten(copies, self.inputs.spec)
        with flambeau.random.fork_rng(), _swapped(self.module, by_name):
            return capture.run(self.module, args, kwargs, by_input, self.constants)


def _swapped(module: nn.Module, state: dict[str, Tensor]) -> capture.Changed:
    """Inside, the module's parameters and buffers are those of `state`."""
    changes = []
    for path, inner in module.named_modules():
        for holder in (inner._parameters, inner._buffers):
            for name in holder:
                full = f"{path}.{name}" if path else name
                if full in state:
                    changes.append((holder, name, state[full]))
    return capture.Changed(*changes)


def _same_course(a: capture.Trace, b: capture.Trace) -> bool:
    return [(s.name, s.overload) for s in a.steps] == [(s.name, s.overload) for s in b.steps]


def _explained(values: list[Any], symbols: list[Symbol], runs: list[dict[Symbol, int]]) -> Any:
    """One value in place of those of all runs: numbers that differ become expressions."""
    first = values[0]
    if isinstance(first, (list, tuple)) and not isinstance(first, capture.Ref):
        if any(len(v) != len(first) for v in values):
            raise Unexplained(values)
        found = [_explained(list(items), symbols, runs) for items in zip(*values)]
        return found if isinstance(first, list) else tuple(found)
    if isinstance(first, dict):
        return {k: _explained([v[k] for v in values], symbols, runs) for k in first}
    if isinstance(first, int) and not isinstance(first, bool):
        if not all(isinstance(v, int) for v in values):
            raise Unexplained(values)
        return fit(values, symbols, runs)
    if any(type(v) is not type(first) or v != first for v in values):
        raise Unexplained(values)
    return first


def _other_values(leaf: Any) -> Any:
    """An input of the same sizes with other values."""
    if not isinstance(leaf, Tensor):
        return leaf
    if leaf.dtype is flambeau.bool:
        return ~leaf
    return (0.5 - leaf.detach()).requires_grad_(leaf.requires_grad) \
        if leaf.is_floating_point() else leaf


class Explained:
    """A trace whose sizes are expressions."""

    def __init__(self, program: Program, sizes: Sizes):
        self.program, self.sizes = program, sizes
        self.first = program.run(program.inputs.leaves)
        self._check_values()
        for symbol in sizes.hinted:
            if symbol not in sizes.ranges or self._follows([symbol]):
                continue
            partner = self._partner(symbol)
            if partner is not None:
                sizes.unite(symbol, partner)
            elif symbol in sizes.flexible:
                sizes.drop(symbol)
        symbols = sizes.symbols
        hints = {s: s.hint for s in symbols}
        runs, traces = [hints], [self.first]
        for symbol in symbols:
            for size in self._sizes(symbol):
                runs.append({**hints, symbol: size})
                traces.append(self._run(symbol, runs[-1]))
        if len(symbols) > 1:
            runs.append({s: self._sizes(s)[0] + 0 for s in symbols if self._sizes(s)} | {
                s: s.hint for s in symbols if not self._sizes(s)})
            traces.append(self._run(symbols[0], runs[-1]))
        self.symbols, self.runs, self.traces = symbols, runs, traces
        self._merge()

    def _check_values(self) -> None:
        """Where sizes depend on values, they may not become numbers of the program."""
        if not any(op is not None and op.unsized for op in [
                overloads.declared(step.name) for step in self.first.steps]):
            return
        leaves = [_other_values(leaf) for leaf in self.program.inputs.leaves]
        try:
            other = self.program.run(leaves)
        except (RuntimeError, ValueError, IndexError, TypeError):
            return
        try:
            if not _same_course(self.first, other):
                raise Unexplained([])
            for step, again in zip(self.first.steps, other.steps):
                _explained([(step.args, step.kwargs), (again.args, again.kwargs)], [], [{}, {}])
        except Unexplained:
            raise GuardOnDataDependentSymNode(
                None, "Could not guard on data-dependent expression: the program does something "
                "with the size of a result whose size depends on the values of the inputs."
            ) from None

    def _sizes(self, symbol: Symbol) -> list[int]:
        bounds = self.sizes.ranges[symbol]
        return tried(symbol.hint, bounds.lower, bounds.upper)

    def _leaves(self, run: dict[Symbol, int]) -> list[Any]:
        return [_resized(leaf, self.sizes.shape(i, run)) if isinstance(leaf, Tensor) else leaf
                for i, leaf in enumerate(self.program.inputs.leaves)]

    def _partner(self, symbol: Symbol) -> Symbol | None:
        """Another dynamic size that has to be equal to this one."""
        return next((other for other in self.sizes.symbols
                     if other != symbol and other.hint == symbol.hint
                     and self._follows([symbol, other])), None)

    def _follows(self, symbols: list[Symbol]) -> bool:
        """Does the program take the same course for other sizes?"""
        hints = {s: s.hint for s in self.sizes.symbols}
        try:
            traces = [self.program.run(self._leaves({**hints, **dict.fromkeys(symbols, size)}))
                      for size in self._sizes(symbols[0])]
        except (RuntimeError, ValueError, IndexError, TypeError, AssertionError):
            return False
        return all(_same_course(self.first, trace) for trace in traces)

    def _run(self, symbol: Symbol, run: dict[Symbol, int]) -> capture.Trace:
        sizes = self.sizes
        try:
            trace = self.program.run(self._leaves(run))
        except GuardOnDataDependentSymNode:
            raise
        except (RuntimeError, ValueError, IndexError, TypeError, AssertionError) as error:
            partner = self._partner(symbol)
            if partner is not None:
                first, second = sorted((symbol, partner), key=lambda s: sizes.names[s])
                raise UserError(sizes.violated(first, [
                    f"The values of {sizes.names[first]} = {sizes.sources[first]} and "
                    f"{sizes.names[second]} = {sizes.sources[second]} must always be equal."],
                    sizes.names[second])) from error
            raise UserError(sizes.violated(symbol, [
                f"You marked {sizes.names[symbol]} as dynamic but your code specialized it to be "
                f"a constant ({symbol.hint}). If you're using mark_dynamic, either remove it or "
                "use maybe_mark_dynamic. If you're using Dim.DYNAMIC, replace it with either "
                f"Dim.STATIC or Dim.AUTO.\n    With {run[symbol]} it raises "
                f"{type(error).__name__}: {error}"])) from error
        if not _same_course(self.first, trace):
            raise UserError(sizes.violated(symbol, [
                f"Not all values of {sizes.names[symbol]} in the specified range take the same "
                f"course: with {run[symbol]} the program calls other ops than with {symbol.hint}"]))
        return trace

    def _merge(self) -> None:
        """Numbers that the runs do not share become expressions."""
        first = self.first
        try:
            for i, step in enumerate(first.steps):
                others = [t.steps[i] for t in self.traces]
                step.args = self._explain([s.args for s in others])
                step.kwargs = self._explain([s.kwargs for s in others])
            for ref in first.shapes:
                shapes = [t.shapes[ref] for t in self.traces]
                first.shapes[ref] = self._explain(shapes)
            leaves = [_pytree.tree_flatten(t.outputs)[0] for t in self.traces]
            spec = _pytree.tree_flatten(first.outputs)[1]
            found = [self._explain(list(values)) for values in zip(*leaves)]
            first.outputs = _pytree.tree_unflatten(found, spec)
        except Unexplained as error:
            symbol = self.symbols[0]
            raise UserError(self.sizes.violated(symbol, [
                f"The program computes numbers of the size {self.sizes.names[symbol]} that are no "
                f"sums, products or quotients of it: {error.args[0]} for sizes "
                f"{[run[symbol] for run in self.runs]}"])) from None

    def _explain(self, values: list[Any]) -> Any:
        return _explained(values, self.symbols, self.runs)
