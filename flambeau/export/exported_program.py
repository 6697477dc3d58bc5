"""`ExportedProgram`: a graph of dispatcher ops with the state that it works on."""
from __future__ import annotations

import copy
import dataclasses
import re
from collections.abc import Iterator
from typing import Any

import flambeau
from flambeau import Tensor, fx, nn
from flambeau.export._trace.sizes import Symbol
from flambeau.export.dynamic_shapes import int_oo
from flambeau.export.graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    OutputKind,
)
from flambeau.fx.graph import _PyTreeCodeGen, _PyTreeInfo
from flambeau.fx.graph_module import _assign_attr
from flambeau.utils import _pytree

__all__ = ["ExportedProgram", "ModuleCallEntry", "ModuleCallSignature"]


@dataclasses.dataclass
class ModuleCallSignature:
    """How a module is called: its inputs and outputs, flat, and the trees that they came from."""
    inputs: list[Any]
    outputs: list[Any]
    in_spec: Any
    out_spec: Any
    forward_arg_names: list[str] | None = None

    def replace_all_uses_with(self, original_node: str, new_node: str) -> None:
        """Let the node `new_node` stand where `original_node` stood."""
        for arg in (*self.inputs, *self.outputs):
            if arg.name == original_node:
                arg.name = new_node


@dataclasses.dataclass
class ModuleCallEntry:
    """A module of the program, and how it is called if that was preserved."""
    fqn: str
    signature: ModuleCallSignature | None = None


@dataclasses.dataclass
class CallSpec:
    """The trees of what the program takes and gives."""
    in_spec: Any
    out_spec: Any


class ExportedProgram:
    """What `export` gives. The graph's inputs are parameters, buffers, constants and then the
    user's; `module()` is a module to call.

    >>> program = flambeau.export.export(nn.ReLU(), (flambeau.ones(2),))
    >>> program.graph_signature.user_inputs
    ('input',)
    >>> program.module()(flambeau.tensor([-1., 1.]))
    tensor([0., 1.])
    """

    def __init__(self, root: Any, graph: fx.Graph, graph_signature: ExportGraphSignature,
                 state_dict: dict[str, Any], range_constraints: dict[Any, Any],
                 module_call_graph: list[ModuleCallEntry], example_inputs: Any = None,
                 constants: dict[str, Any] | None = None, *, verifiers: Any = None):
        graph.owning_module = None
        self._graph_module = fx.GraphModule(root, graph)
        self._graph_signature, self._state_dict = graph_signature, state_dict
        self._range_constraints, self._module_call_graph = range_constraints, module_call_graph
        self._example_inputs, self._constants = example_inputs, constants or {}
        self._dialect = "TRAINING"
        self._order: list[str] = [n.name for n in graph.find_nodes(op="placeholder")]

    @property
    def graph_module(self) -> fx.GraphModule:
        """The graph as a module of flat inputs and outputs."""
        return self._graph_module

    @property
    def graph(self) -> fx.Graph:
        """The graph."""
        return self._graph_module.graph

    @property
    def graph_signature(self) -> ExportGraphSignature:
        """What the graph's inputs and outputs are."""
        return self._graph_signature

    @property
    def state_dict(self) -> dict[str, Any]:
        """Parameters and buffers."""
        return self._state_dict

    @property
    def constants(self) -> dict[str, Any]:
        """Tensors that are neither, and buffers that are not in the state dict."""
        return self._constants

    @property
    def tensor_constants(self) -> dict[str, Any]:
        """The same."""
        return self._constants

    @property
    def range_constraints(self) -> dict[Any, Any]:
        """The bounds of dynamic sizes."""
        return self._range_constraints

    @property
    def module_call_graph(self) -> list[ModuleCallEntry]:
        """The modules of the program."""
        return self._module_call_graph

    @property
    def example_inputs(self) -> Any:
        """The inputs with which it was exported."""
        return self._example_inputs

    @example_inputs.setter
    def example_inputs(self, value: Any) -> None:
        if value is None:
            self._example_inputs = None
            return
        if not (isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], tuple)
                and isinstance(value[1], dict)):
            raise ValueError("Example inputs should be a tuple containing example arguments (as "
                             "a tuple), and example kwargs (as a dictionary).")
        self._example_inputs = value

    @property
    def call_spec(self) -> CallSpec:
        """The trees of what the program takes and gives."""
        signature = self._module_call_graph[0].signature
        assert signature is not None
        return CallSpec(signature.in_spec, signature.out_spec)

    @property
    def dialect(self) -> str:
        """`TRAINING` as exported, `ATEN` after decompositions."""
        return self._dialect

    def parameters(self) -> Iterator[nn.Parameter]:
        """The parameters."""
        for _, parameter in self.named_parameters():
            yield parameter

    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Names and parameters."""
        for name in self._graph_signature.parameters:
            yield name, self._state_dict[name]

    def buffers(self) -> Iterator[Tensor]:
        """The buffers."""
        for _, buffer in self.named_buffers():
            yield buffer

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """Names and buffers."""
        hidden = set(self._graph_signature.non_persistent_buffers)
        for name in self._graph_signature.buffers:
            yield name, (self._constants if name in hidden else self._state_dict)[name]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("Unable to call ExportedProgram directly. You should use "
                           "`exported_program.module()` instead.")

    def __str__(self) -> str:
        code = self._graph_module.print_readable(False).replace("\n", "\n    ")
        signature = str(self._graph_signature).replace("\n", "\n    ")
        return (f"ExportedProgram:\n    {code}\nGraph signature: {signature}\n"
                f"Range constraints: {self._range_constraints}\n")

    def validate(self) -> None:
        """Check that the graph and its signature fit together."""
        self.graph.lint()
        names = [spec.arg.name for spec in self._graph_signature.input_specs]
        if names != [n.name for n in self.graph.find_nodes(op="placeholder")]:
            raise AssertionError("the inputs of the graph are not those of its signature")

    def value_of(self, spec: Any) -> Any:
        """What an input that is not the user's holds."""
        if spec.target in self._constants:
            return self._constants[spec.target]
        return self._state_dict[spec.target]

    def module(self, check_guards: bool = True) -> fx.GraphModule:
        """A module to call as the exported one was; it has the same state, with the same names.
        Inputs of other sizes than those exported raise, unless the size is dynamic."""
        return _Unlifted(self, check_guards).module

    def run_decompositions(self, decomp_table: dict[Any, Any] | None = None,
                           decompose_custom_triton_ops: bool = False) -> ExportedProgram:
        """The program in fewer kinds of ops, none of which writes to its arguments: new values of
        buffers are outputs."""
        from flambeau.export._decompose import decomposed
        return decomposed(self, decomp_table)

    def __deepcopy__(self, memo: Any) -> ExportedProgram:
        made = ExportedProgram(
            self._graph_module, copy.deepcopy(self.graph), copy.deepcopy(self._graph_signature),
            copy.deepcopy(self._state_dict, memo), dict(self._range_constraints),
            copy.deepcopy(self._module_call_graph), self._example_inputs,
            copy.deepcopy(self._constants, memo))
        made._dialect = self._dialect
        return made


# ---- as a module --------------------------------------------------------------------------------

class GuardsFn(nn.Module):
    """Raises where an input has another size than the program was exported for."""

    _is_impure = True           # so that it stays where what has no users goes

    def __init__(self, checks: list[Any]):
        super().__init__()
        self._checks = checks

    def forward(self, *args: Any) -> None:
        """Check the inputs."""
        sizes: dict[Any, tuple[str, int]] = {}
        for value, check in zip(args, self._checks):
            check(value, sizes)


class _Check:
    """What is demanded of one input."""

    def __init__(self, name: str, expected: Any, ranges: dict[Any, Any]):
        self.name, self.expected, self.ranges = name, expected, ranges

    def __call__(self, value: Any, sizes: dict[Any, tuple[str, int]]) -> None:
        if not isinstance(self.expected, tuple):
            if value != self.expected or type(value) is not type(self.expected):
                raise AssertionError(f"Guard failed: {self.name} == {self.expected!r}")
            return
        shape = value.size()
        if len(shape) != len(self.expected):
            raise AssertionError(f"Guard failed: len({self.name}.size()) == {len(self.expected)}")
        for i, (size, expected) in enumerate(zip(shape, self.expected)):
            source = f"{self.name}.size()[{i}]"
            if isinstance(expected, int):
                _guard(size == expected, f"{source} == {expected}")
            elif isinstance(expected, Symbol):
                if expected in sizes:
                    other, known = sizes[expected]
                    _guard(size == known, f"{source} == {other}")
                    continue
                sizes[expected] = source, size
                bounds = self.ranges.get(expected)
                if bounds is not None:
                    _guard(bounds.lower <= 2 or size >= bounds.lower,
                           f"{source} >= {bounds.lower}")
                    _guard(bounds.upper == int_oo or size <= bounds.upper,
                           f"{source} <= {bounds.upper}")
            elif all(s in sizes for s in expected.symbols):
                wanted = expected.value({s: sizes[s][1] for s in expected.symbols})
                text = re.sub(r"s\d+", lambda m: next(
                    source for s, (source, _) in sizes.items() if s.name == m[0]), str(expected))
                _guard(size == wanted, f"{source} == {text}")


def _guard(holds: bool, text: str) -> None:
    if not holds:
        raise AssertionError(f"Guard failed: {text}")


class _Unlifted:
    """Makes the module of a program: state comes from attributes, inputs are trees."""

    def __init__(self, program: ExportedProgram, check_guards: bool):
        self.program = program
        self.root = nn.Module()
        signature = program.module_call_graph[0].signature
        assert signature is not None
        graph = fx.Graph()
        graph.set_codegen(_PyTreeCodeGen(_PyTreeInfo(
            list(signature.forward_arg_names or []), signature.in_spec, signature.out_spec)))
        self._fill(graph, check_guards)
        self.module = fx.GraphModule(self.root, graph)
        for spec in program.graph_signature.input_specs:
            if spec.kind is not InputKind.USER_INPUT:
                self._hide(spec)
        self.module.register_forward_pre_hook(self._check_tree, with_kwargs=True)

    def _attribute(self, spec: Any) -> None:
        _assign_attr(self.program.value_of(spec), self.root, spec.target)

    def _hide(self, spec: Any) -> None:
        """Keep what is no state out of the state dict."""
        path, _, name = spec.target.rpartition(".")
        holder = self.module.get_submodule(path)
        if spec.kind is InputKind.CONSTANT_TENSOR or spec.persistent is False:
            holder._non_persistent_buffers_set.add(name)

    def _fill(self, graph: fx.Graph, check_guards: bool) -> None:
        program = self.program
        specs = {spec.arg.name: spec for spec in program.graph_signature.input_specs}
        values: dict[Any, Any] = {}
        users = []
        for node in program.graph.find_nodes(op="placeholder"):
            spec = specs[node.name]
            if spec.kind is InputKind.USER_INPUT:
                users.append(node)
                continue
            self._attribute(spec)
            values[node] = graph.create_node("get_attr", spec.target,
                                             name=spec.target.replace(".", "_"))
        for node in users:
            values[node] = graph.placeholder(node.name)
            values[node].name = node.name
        for node, made in values.items():
            made.meta = dict(node.meta)
        if check_guards and users:
            self.root.add_module("_guards_fn", GuardsFn([
                _Check(n.name, _expected(n, specs[n.name]), program.range_constraints)
                for n in users]))
            graph.call_module("_guards_fn", tuple([values[n] for n in users]))
        self._body(graph, values)

    def _body(self, graph: fx.Graph, values: dict[Any, Any]) -> None:
        program = self.program
        outputs = []
        for node in program.graph.nodes:
            if node.op == "placeholder":
                continue
            if node.op != "output":
                values[node] = graph.node_copy(node, lambda n: values[n])
                continue
            targets = {spec.arg.name: spec for spec in program.graph_signature.input_specs}
            by_target = {spec.target: spec.arg.name for spec in targets.values() if spec.target}
            nodes = {n.name: n for n in program.graph.nodes}
            for value, spec in zip(node.args[0], program.graph_signature.output_specs):
                new = fx.node.map_arg(value, lambda n: values[n])
                if spec.kind is OutputKind.USER_OUTPUT:
                    outputs.append(new)
                    continue
                kept = by_target.get(spec.target, spec.target)
                graph.call_function(flambeau.ops.aten.copy_.default, (values[nodes[kept]], new))
        graph.output(tuple(outputs))

    def _check_tree(self, module: nn.Module, args: Any, kwargs: Any) -> Any:
        spec = module._in_spec
        names = list(spec.children_specs[1].context or ())
        ordered = {k: kwargs[k] for k in names if k in kwargs} | kwargs
        found = _pytree.tree_structure((args, ordered))
        if found != spec:
            raise ValueError(
                f"Trying to flatten user inputs with exported input tree spec: \n{spec}\n"
                f"but actually got inputs with tree spec of: \n{found}.\nPlease check that the "
                "inputs have the same number and type of args and kwargs as the ones you used "
                "when tracing.")
        return args, ordered


def _expected(node: Any, spec: Any) -> Any:
    if isinstance(spec.arg, ConstantArgument):
        return spec.arg.value
    return tuple(node.meta.get("sizes", tuple(node.meta["val"].shape)))
