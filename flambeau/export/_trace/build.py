"""Runs a program on examples, of several sizes, and builds the graph that explains them."""
from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import flambeau
from flambeau import Tensor, fx, nn
from flambeau.export._trace import capture, overloads
from flambeau.export._trace.inputs import Inputs, Sizes, _dynamic
from flambeau.export._trace.runs import Explained, Program
from flambeau.export._trace.sizes import Expression, Symbol
from flambeau.export.dynamic_shapes import AdditionalInputs, ShapesCollection
from flambeau.export.exported_program import ExportedProgram, ModuleCallEntry, ModuleCallSignature
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
from flambeau.schema.errors import type_name
from flambeau.utils import _pytree

# ---- the graph ----------------------------------------------------------------------------------

class Builder:
    """Makes the graph of an explained trace."""

    def __init__(self, program: Program, explained: Explained):
        self.program, self.sizes, self.trace = program, explained.sizes, explained.first
        self.graph = fx.Graph()
        self.nodes: dict[capture.Ref, Any] = {}
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
        ref = capture.Ref(-1, name=name)
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
            source = self.nodes[capture.Ref(-1, name=self.program.inputs.names[i])]
            node = self.graph.call_function(overloads.target("sym_size", "int"), (source, dim),
                                            name=f"sym_size_int_{start + k}")
            node.meta["val"] = symbol
            self._numbers[symbol] = node

    def _value(self, value: Any) -> Any:
        if isinstance(value, capture.Ref):
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

    def _node(self, ref: capture.Ref) -> Any:
        if ref not in self.nodes:
            whole = self.nodes[capture.Ref(ref.step)]
            node = self.graph.call_function(operator.getitem, (whole, ref.part))
            self._describe(node, self.trace.steps[ref.step].result[ref.part],
                           self.trace.shapes[ref])
            node.meta["stack_trace"] = whole.meta.get("stack_trace", "")
            self.nodes[ref] = node
        return self.nodes[ref]

    def _step(self, number: int, step: capture.Step) -> None:
        self._stack = step.stack
        node = self.graph.call_function(
            overloads.target(step.name, step.overload), self._value(step.args),
            self._value(step.kwargs),
            name=self.graph._target_to_str(step.name.rpartition("::")[2]))
        node.meta.update(nn_module_stack=step.modules, stack_trace=step.stack)
        self.nodes[capture.Ref(number)] = node
        if isinstance(step.result, Tensor):
            self._describe(node, step.result, self.trace.shapes[capture.Ref(number)])
            return
        node.meta["sizes"] = ()
        if step.result is None:
            node.meta["val"] = None
            return
        for part, value in enumerate(step.result):
            if isinstance(value, Tensor):
                self._node(capture.Ref(number, part))

    def _outputs(self) -> None:
        leaves, self.out_spec = _pytree.tree_flatten(self.trace.outputs)
        self.output_specs, results = [], []
        for leaf in leaves:
            value = self._value(leaf)
            results.append(value)
            if isinstance(leaf, capture.Ref):
                arg: Any = TensorArgument(value.name)
            elif isinstance(leaf, (Expression, Symbol)):
                arg = SymIntArgument(value.name)
            elif isinstance(leaf, (int, float, bool, str, type(None), complex)):
                arg = ConstantArgument("", leaf)
            else:
                raise RuntimeError(f"Found {type(leaf)} in output, which is not a known type. If "
                                   "it holds tensors, register it as a pytree.")
            self.output_specs.append(OutputSpec(OutputKind.USER_OUTPUT, arg, None))
        self.graph.output(tuple(results))


def export_module(module: Any, args: Any, kwargs: Any, shapes: Any,
                  preserved: tuple[str, ...] = ()) -> ExportedProgram:
    """The exported program."""
    if kwargs is not None and not isinstance(kwargs, Mapping):
        raise TypeError("inspect.Signature.bind() argument after ** must be a mapping, not "
                        f"{type_name(kwargs)}")
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
