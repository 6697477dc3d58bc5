"""Runs a program on examples, of several sizes, and builds the graph that explains them."""
from __future__ import annotations

import hashlib
import inspect
import operator
from collections.abc import Iterator
from typing import Any

import flambeau
from flambeau import Tensor, fx, nn
from flambeau._dynamo.exc import UserError
from flambeau.export import _capture, _overloads
from flambeau.export._sizes import Expression, Symbol, Unexplained, ValueRange, fit, tried
from flambeau.export.dynamic_shapes import (
    AdditionalInputs,
    Dim,
    ShapesCollection,
    _DerivedDim,
    _DimHint,
    _HintKind,
    int_oo,
)
from flambeau.export.exported_program import (
    ExportedProgram,
    ModuleCallEntry,
    ModuleCallSignature,
)
from flambeau.export.graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymIntArgument,
    TensorArgument,
)
from flambeau.fx.experimental.symbolic_shapes import (
    ConstraintViolationError,
    GuardOnDataDependentSymNode,
)
from flambeau.utils import _pytree

# ---- inputs -------------------------------------------------------------------------------------

class Inputs:
    """The example, flat, with names."""

    def __init__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]):
        signature = inspect.signature(module.forward)
        bound = signature.bind(*args, **kwargs)
        variadic = next((p.name for p in signature.parameters.values()
                         if p.kind is p.VAR_POSITIONAL), None)
        names = [p.name for p in signature.parameters.values()
                 if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        self.argument_names = [names[i] if i < len(names) else f"{variadic}_{i - len(names)}"
                               for i in range(len(args))] + list(kwargs)
        self.args, self.kwargs, self.bound = args, kwargs, bound.arguments
        self.leaves, self.spec = _pytree.tree_flatten((args, kwargs))
        self.paths = [path for path, _ in _pytree.tree_leaves_with_path((args, kwargs))]
        self.names = [self._name(path) for path in self.paths]

    def _name(self, path: Any) -> str:
        parts = [str(getattr(key, "idx", getattr(key, "key", getattr(key, "name", key))))
                 for key in path]
        head = self.argument_names[int(parts[1])] if parts[0] == "0" else parts[1]
        return "_".join([head, *parts[2:]]).replace(".", "_")

    def source(self, i: int) -> str:
        """The input as guards of PyTorch's call it."""
        path = self.paths[i]
        parts = [getattr(key, "idx", getattr(key, "key", getattr(key, "name", key)))
                 for key in path]
        head = self.argument_names[parts[0 + 1]] if parts[0] == 0 else parts[1]
        return f"L['{head}']" + "".join(f"[{part!r}]" for part in parts[2:])


def _leaf_shapes(shapes: Any, value: Any, found: list[Any], where: str) -> None:
    """Collect what `dynamic_shapes` says of each leaf of `value`."""
    if isinstance(value, (list, tuple)) and not isinstance(value, flambeau.Size):
        if shapes is not None and (not isinstance(shapes, (list, tuple))
                                   or len(shapes) != len(value)):
            raise UserError(f"Detected mismatch between the structure of `inputs` and "
                            f"`dynamic_shapes`: `inputs{where}` has {len(value)} elements, but "
                            f"`dynamic_shapes{where}` has {_length(shapes)} elements")
        for i, item in enumerate(value):
            _leaf_shapes(None if shapes is None else shapes[i], item, found, f"{where}[{i}]")
    elif isinstance(value, dict):
        if shapes is not None and set(shapes) != set(value):
            raise UserError(f"Detected mismatch between the structure of `inputs` and "
                            f"`dynamic_shapes`: `inputs{where}` has keys {list(value)}, but "
                            f"`dynamic_shapes{where}` has keys {list(shapes)}")
        for key, item in value.items():
            _leaf_shapes(None if shapes is None else shapes[key], item, found, f"{where}[{key!r}]")
    else:
        leaves = _pytree.tree_leaves(value)
        if len(leaves) == 1 and leaves[0] is value:
            found.append(shapes)
        else:
            given = _pytree.tree_leaves(shapes, is_leaf=lambda s: s is None or (isinstance(
                s, (dict, tuple)) and all(isinstance(d, (Dim, _DimHint, int, type(None)))
                                          for d in (s.values() if isinstance(s, dict) else s))))
            found += [None] * len(leaves) if shapes is None else given


def _length(shapes: Any) -> int:
    return len(shapes) if hasattr(shapes, "__len__") else 1


def _dynamic(inputs: Inputs, shapes: Any) -> list[Any]:
    """What `dynamic_shapes` says of each leaf of the inputs."""
    if shapes is None:
        return [None] * len(inputs.leaves)
    if isinstance(shapes, dict):
        names = list(inputs.bound)
        if set(shapes) != set(names):
            raise UserError(
                "When `dynamic_shapes` is specified as a dict, its top-level keys must be the arg "
                f"names {names} of `inputs`, but here they are {list(shapes)}. Alternatively, you "
                "could also ignore arg names entirely and specify `dynamic_shapes` as a "
                "list/tuple matching `inputs`.")
        ordered = [shapes[name] for name in names]
    else:
        ordered = list(shapes)
        if len(ordered) != len(inputs.bound):
            raise UserError("Detected mismatch between the structure of `inputs` and "
                            f"`dynamic_shapes`: `inputs` has {len(inputs.bound)} elements, but "
                            f"`dynamic_shapes` has {len(ordered)} elements")
    found: list[Any] = []
    for (name, value), shape in zip(inputs.bound.items(), ordered):
        _leaf_shapes(shape, value, found, f"[{name!r}]")
    return found


class Sizes:
    """The dynamic sizes of the example: a symbol, or an expression of one, for each."""

    def __init__(self, inputs: Inputs, shapes: list[Any]):
        self.inputs = inputs
        self.ranges: dict[Symbol, ValueRange] = {}
        self.of: dict[tuple[int, int], Symbol | Expression] = {}        # input, dimension
        self.flexible: set[Symbol] = set()              # those that may turn out to be static
        self.hinted: dict[Symbol, None] = {}            # those that nobody has named
        self.names: dict[Symbol, str] = {}
        self.sources: dict[Symbol, str] = {}
        self._taken: set[int] = set()
        self._by_name: dict[str, Symbol] = {}
        places: dict[str, list[tuple[int, int, Any]]] = {}
        for i, (leaf, shape) in enumerate(zip(inputs.leaves, shapes)):
            if isinstance(leaf, Tensor) and shape is not None:
                for dim, wanted in self._wanted(leaf, shape, inputs.names[i]):
                    root = wanted.root if isinstance(wanted, _DerivedDim) else wanted
                    key = root.__name__ if isinstance(root, Dim) else f"{i} {dim}"
                    places.setdefault(key, []).append((i, dim, wanted))
        for found in places.values():
            self._enter(found)

    def _wanted(self, leaf: Tensor, shape: Any, name: str) -> Iterator[tuple[int, Any]]:
        items = shape.items() if isinstance(shape, dict) else enumerate(shape)
        if not isinstance(shape, dict) and len(shape) != leaf.ndim:
            raise UserError(f"Expected dynamic shape spec {shape} for `{name}` to have the same "
                            f"length as the actual tensor shape {leaf.shape} (expected "
                            f"{leaf.ndim}, but got {len(shape)} instead)")
        for dim, wanted in items:
            if isinstance(wanted, int):
                if wanted != leaf.shape[dim]:
                    raise UserError(f"Static shape constraint of {wanted} does not match input "
                                    f"size of {leaf.shape[dim]}, for `{name}.shape[{dim}]`")
                continue
            if isinstance(wanted, _DimHint) and wanted.type is _HintKind.STATIC:
                continue
            if wanted is not None:
                yield dim, wanted

    def _enter(self, places: list[tuple[int, int, Any]]) -> None:
        """One symbol for sizes that are equal by name."""
        plain = [p for p in places if not isinstance(p[2], _DerivedDim)]
        i, dim, wanted = (plain or places)[-1]
        size = self.inputs.leaves[i].shape[dim]
        root = wanted
        if isinstance(wanted, _DerivedDim):
            size, rest = divmod(size - wanted.shift, wanted.scale)
            root = wanted.root
            if rest:
                raise UserError(f"Expected shape[{dim}] = {size * wanted.scale + rest} of input "
                                f"Tensor to be of the form {wanted}, where {root.__name__} is an "
                                "integer")
        source = f"{self.inputs.source(i)}.size()[{dim}]"
        symbol = Symbol(self._name(source), size)
        self.sources[symbol] = source
        if isinstance(root, _DimHint):
            low, high = root.min, root.max
            self.ranges[symbol] = ValueRange(2 if low is None else low,
                                             int_oo if high is None else high)
            if root.type is _HintKind.AUTO:
                self.flexible.add(symbol)
            self.names[symbol] = source
            self.hinted[symbol] = None
            if size < 2:
                self._specialised(symbol, root)
                return
        else:
            self.ranges[symbol] = ValueRange(root.min, root.max)
            self.names[symbol] = root.__name__
        bounds = self.ranges[symbol]
        if not bounds.lower <= size <= bounds.upper:
            raise ConstraintViolationError(f"{size} not in range [{bounds.lower}, "
                                           f"{bounds.upper!r}]")
        for i, dim, wanted in places:
            if isinstance(wanted, _DerivedDim):
                terms: Any = ((wanted.scale, (symbol,)),)
                terms += ((wanted.shift, ()),) if wanted.shift else ()
                value: Any = Expression(terms)
            else:
                value = symbol
            here = self.inputs.leaves[i].shape[dim]
            expected = value.value({symbol: size}) if isinstance(value, Expression) else size
            if here != expected:
                raise UserError(
                    f"Constraints violated ({self.names[symbol]})! The sizes that are called "
                    f"{wanted} differ: {expected} and {here}")
            self.of[i, dim] = value

    def _specialised(self, symbol: Symbol, hint: _DimHint) -> None:
        del self.ranges[symbol], self.hinted[symbol]
        if hint.type is _HintKind.DYNAMIC:
            raise UserError(self.violated(symbol, [f"You marked {self.names[symbol]} as dynamic "
                                                   "but your code specialized it to be a constant "
                                                   f"({symbol.hint})."]))

    def _name(self, source: str) -> str:
        number = int(hashlib.sha256(source.encode()).hexdigest(), 16) % 100
        while number in self._taken:
            number += 1
        self._taken.add(number)
        return f"s{number}"

    @property
    def symbols(self) -> list[Symbol]:
        """The dynamic sizes."""
        return list(self.ranges)

    def drop(self, symbol: Symbol) -> None:
        """Make a size static."""
        del self.ranges[symbol]
        self.of = {place: value for place, value in self.of.items() if value != symbol}

    def unite(self, symbol: Symbol, partner: Symbol) -> None:
        """Let two sizes be one, that which comes later."""
        places = [next(place for place, value in self.of.items() if value == s)
                  for s in (symbol, partner)]
        gone, kept = (symbol, partner) if places[0] < places[1] else (partner, symbol)
        del self.ranges[gone]
        self.of = {place: kept if value == gone else value for place, value in self.of.items()}

    def shape(self, i: int, sizes: dict[Symbol, int] | None = None) -> tuple[Any, ...]:
        """The shape of an input: with symbols, or for certain sizes."""
        found = []
        for dim, n in enumerate(self.inputs.leaves[i].shape):
            value = self.of.get((i, dim), n)
            if sizes is not None and isinstance(value, Symbol):
                value = sizes[value]
            elif sizes is not None and isinstance(value, Expression):
                value = value.value(sizes)
            found.append(value)
        return tuple(found)

    def violated(self, symbol: Symbol, lines: list[str], fix: str = "") -> str:
        """The message of a size that cannot be dynamic."""
        name = self.names[symbol]
        said = "\n".join(f"  - {line}" for line in lines)
        return (f"Constraints violated ({name})! For more information, run with "
                f"TORCH_LOGS=\"+dynamic\".\n{said}\nSuggested fixes:\n"
                f"  {name} = {fix or symbol.hint}\n")


def _resized(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The values of a tensor, repeated, in another shape."""
    found = tensor.detach()
    for dim, size in enumerate(shape):
        if found.shape[dim] != size:
            places = flambeau.arange(size) % max(found.shape[dim], 1)
            found = found.index_select(dim, places)
    return found.requires_grad_(tensor.requires_grad)


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

    def run(self, leaves: list[Any]) -> _capture.Trace:
        """A trace of the program on these inputs; its state stays what it is."""
        by_name, by_input = self._state()
        copies = [v.detach().clone().requires_grad_(v.requires_grad) if isinstance(v, Tensor)
                  else v for v in leaves]
        for name, value in zip(self.inputs.names, copies):
            if isinstance(value, Tensor):
                by_input[name] = value
        args, kwargs = _pytree.tree_unflatten(copies, self.inputs.spec)
        with flambeau.random.fork_rng(), _swapped(self.module, by_name):
            return _capture.run(self.module, args, kwargs, by_input, self.constants)


def _swapped(module: nn.Module, state: dict[str, Tensor]) -> _capture.Changed:
    """Inside, the module's parameters and buffers are those of `state`."""
    changes = []
    for path, inner in module.named_modules():
        for holder in (inner._parameters, inner._buffers):
            for name in holder:
                full = f"{path}.{name}" if path else name
                if full in state:
                    changes.append((holder, name, state[full]))
    return _capture.Changed(*changes)


def _same_course(a: _capture.Trace, b: _capture.Trace) -> bool:
    return [(s.name, s.overload) for s in a.steps] == [(s.name, s.overload) for s in b.steps]


def _explained(values: list[Any], symbols: list[Symbol], runs: list[dict[Symbol, int]]) -> Any:
    """One value in place of those of all runs: numbers that differ become expressions."""
    first = values[0]
    if isinstance(first, (list, tuple)) and not isinstance(first, _capture.Ref):
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
                _overloads.declared(step.name) for step in self.first.steps]):
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

    def _run(self, symbol: Symbol, run: dict[Symbol, int]) -> _capture.Trace:
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
                f"course: with {run[symbol]} the program calls other ops than with "
                f"{symbol.hint}"]))
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


# ---- the graph ----------------------------------------------------------------------------------

class Builder:
    """Makes the graph of an explained trace."""

    def __init__(self, program: Program, explained: Explained):
        self.program, self.sizes, self.trace = program, explained.sizes, explained.first
        self.graph = fx.Graph()
        self.nodes: dict[_capture.Ref, Any] = {}
        self.input_specs: list[InputSpec] = []
        self._numbers: dict[Any, Any] = {}
        self._stack = ""

    def build(self) -> None:
        """Inputs, steps, outputs."""
        self._inputs()
        self._size_nodes()
        for i, step in enumerate(self.trace.steps):
            self._step(i, step)
        self._outputs()
        for node in self._numbers.values():
            if not node.users:
                self.graph.erase_node(node)

    def _placeholder(self, name: str, kind: InputKind, target: str | None, value: Any,
                     persistent: bool | None = None) -> Any:
        node = self.graph.placeholder(name)
        node.name = name                    # even where a built-in function is called that
        self.graph._used_names.add(name)
        ref = _capture.Ref(-1, name=name)
        if isinstance(value, Tensor):
            self._describe(node, value, self.trace.shapes.get(ref, tuple(value.shape)))
            arg: Any = TensorArgument(node.name)
        else:
            node.meta["val"] = value
            arg = ConstantArgument(node.name, value)
        self.nodes[ref] = node
        self.input_specs.append(InputSpec(kind, arg, target, persistent))
        return node

    @staticmethod
    def _describe(node: Any, value: Tensor, shape: tuple[Any, ...]) -> None:
        node.meta["val"] = flambeau.empty_strided(
            tuple(value.shape), value.stride(), dtype=value.dtype, device="meta",
            requires_grad=value.requires_grad and value.is_leaf)
        node.meta["sizes"] = shape

    def _inputs(self) -> None:
        program = self.program
        for name, value in program.parameters.items():
            self._placeholder(f"p_{name.replace('.', '_')}", InputKind.PARAMETER, name, value)
        for name, value in program.buffers.items():
            self._placeholder(f"b_{name.replace('.', '_')}", InputKind.BUFFER, name, value,
                              name in program.persistent)
        for name, value in self.trace.constants.items():
            self._placeholder(f"c_{name.replace('.', '_')}", InputKind.CONSTANT_TENSOR, name,
                              value)
        for name, value in zip(program.inputs.names, program.inputs.leaves):
            self._placeholder(name, InputKind.USER_INPUT, None, value)

    def _size_nodes(self) -> None:
        """A node for each dynamic size."""
        places = {}
        for place, value in self.sizes.of.items():
            if isinstance(value, Symbol):
                places[value] = place
        start = len(self.sizes.of)
        for k, symbol in enumerate(self.sizes.symbols):
            if symbol not in places:
                continue
            i, dim = places[symbol]
            source = self.nodes[_capture.Ref(-1, name=self.program.inputs.names[i])]
            node = self.graph.call_function(_overloads.target("sym_size", "int"), (source, dim),
                                            name=f"sym_size_int_{start + k}")
            node.meta["val"] = symbol
            self._numbers[symbol] = node

    def _value(self, value: Any) -> Any:
        if isinstance(value, _capture.Ref):
            return self._node(value)
        if isinstance(value, (list, tuple)):
            found = [self._value(v) for v in value]
            return found if isinstance(value, list) else tuple(found)
        if isinstance(value, dict):
            return {k: self._value(v) for k, v in value.items()}
        return self._number(value) if isinstance(value, (Expression, Symbol)) else value

    def _number(self, expression: Expression | Symbol) -> Any:
        """The node of an expression of sizes."""
        if isinstance(expression, Expression) and expression not in self._numbers:
            def call(function: Any, a: Any, b: Any) -> Any:
                return self.graph.call_function(function, (a, b))
            before = len(self.graph.nodes)
            found = expression.emit(call, self._numbers)
            for node in list(self.graph.nodes)[before:]:
                node.meta["stack_trace"] = self._stack
            found.meta["val"] = expression
            self._numbers[expression] = found
        return self._numbers[expression]

    def _node(self, ref: _capture.Ref) -> Any:
        if ref not in self.nodes:
            whole = self.nodes[_capture.Ref(ref.step)]
            node = self.graph.call_function(operator.getitem, (whole, ref.part))
            self._describe(node, self.trace.steps[ref.step].result[ref.part],
                           self.trace.shapes[ref])
            node.meta["stack_trace"] = whole.meta.get("stack_trace", "")
            self.nodes[ref] = node
        return self.nodes[ref]

    def _step(self, number: int, step: _capture.Step) -> None:
        self._stack = step.stack
        node = self.graph.call_function(
            _overloads.target(step.name, step.overload), self._value(step.args),
            self._value(step.kwargs),
            name=self.graph._target_to_str(step.name.rpartition("::")[2]))
        node.meta.update(nn_module_stack=step.modules, stack_trace=step.stack)
        self.nodes[_capture.Ref(number)] = node
        if isinstance(step.result, Tensor):
            self._describe(node, step.result, self.trace.shapes[_capture.Ref(number)])
            return
        node.meta["sizes"] = ()
        if step.result is None:
            node.meta["val"] = None
            return
        for part, value in enumerate(step.result):
            if isinstance(value, Tensor):
                self._node(_capture.Ref(number, part))

    def _outputs(self) -> None:
        leaves, self.out_spec = _pytree.tree_flatten(self.trace.outputs)
        self.output_specs, results = [], []
        for leaf in leaves:
            value = self._value(leaf)
            results.append(value)
            if isinstance(leaf, _capture.Ref):
                arg: Any = TensorArgument(value.name)
            elif isinstance(leaf, (Expression, Symbol)):
                arg = SymIntArgument(value.name)
            elif isinstance(leaf, (int, float, bool, str, type(None), complex)):
                arg = ConstantArgument("", leaf)
            else:
                raise UserError(f"It looks like one of the outputs with type `{type(leaf)}` is "
                                "not supported or pytree-flattenable.")
            self.output_specs.append(OutputSpec(OutputKind.USER_OUTPUT, arg, None))
        self.graph.output(tuple(results))


def export_module(module: Any, args: Any, kwargs: Any, shapes: Any,
                  preserved: tuple[str, ...] = ()) -> ExportedProgram:
    """The exported program."""
    kwargs = dict(kwargs or {})
    if isinstance(shapes, (ShapesCollection, AdditionalInputs)):
        more, shapes = shapes, shapes.dynamic_shapes(module, args, kwargs)
    else:
        more = None
    inputs = Inputs(module, args, kwargs)
    program = Program(module, inputs)
    sizes = Sizes(inputs, _dynamic(inputs, shapes))
    builder = Builder(program, Explained(program, sizes))
    builder.build()
    signature = ModuleCallSignature([], [], inputs.spec, builder.out_spec, inputs.argument_names)
    calls = [ModuleCallEntry("", signature)]
    calls += [ModuleCallEntry(name) for name, _ in module.named_modules() if name]
    held = module.state_dict(keep_vars=True)
    state = {name: held[name] for name in (*program.parameters, *program.buffers) if name in held}
    state |= {name: value for name, value in held.items() if name not in state}
    constants = dict(builder.trace.constants)
    constants |= {n: b for n, b in program.buffers.items() if n not in program.persistent}
    made = ExportedProgram(
        nn.Module(), builder.graph, ExportGraphSignature(builder.input_specs, builder.output_specs),
        state, dict(sizes.ranges), calls, (args, kwargs), constants)
    if isinstance(more, AdditionalInputs):
        more.verify(made)
    return made
