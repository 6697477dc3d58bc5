"""`unflatten`: an exported program as nested modules again, those that it was made of."""
from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from flambeau import fx, nn
from flambeau.export.graph_signature import InputKind
from flambeau.fx.graph_module import _print_readable
from flambeau.fx.node import map_arg
from flambeau.utils import _pytree

__all__ = ["FlatArgsAdapter", "InterpreterModule", "UnflattenedModule", "unflatten"]


class FlatArgsAdapter:
    """Makes the inputs that a program was exported for from those that it is called with."""

    def adapt(self, target_spec: Any, input_spec: Any, input_args: list[Any],
              metadata: dict[str, Any] | None = None, obj: Any | None = None) -> list[Any]:
        """The flat inputs of `target_spec`, from those of `input_spec`."""
        raise NotImplementedError("FlatArgsAdapter.adapt: to be defined by a subclass")

    def get_flat_arg_paths(self) -> list[str]:
        """The names of the flat inputs, if they have any."""
        return []


class InterpreterModule(nn.Module):
    """A module that runs a graph node by node."""

    def __init__(self, graph: fx.Graph, ty: str | None = None):
        super().__init__()
        self.graph, self._ty = graph, ty
        graph.owning_module = self

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the graph; arguments by name are those that the graph calls so."""
        names = [node.name for node in self.graph.find_nodes(op="placeholder")][len(args):]
        given = tuple(kwargs[name] for name in names if name in kwargs)
        return fx.Interpreter(self, graph=self.graph).run(*args, *given)

    def type_name(self) -> str | None:
        """The name of the class that the module had."""
        return self._ty

    def print_readable(self, print_output: bool = True, include_stride: bool = False,
                       include_device: bool = False, colored: bool = False) -> str:
        """The code of this module and of those in it; it is printed as well."""
        code = fx.GraphModule(self, self.graph).print_readable(
            False, include_stride, include_device, colored)
        if print_output:
            print(code)
        return code


class State(NamedTuple):
    """A parameter, buffer or constant that a node of a flat graph stands for."""

    name: str
    value: Any
    kind: InputKind
    persistent: bool = True


class Outline:
    """Makes nested modules of the steps of a flat graph, by the modules that they ran in.

    `state_of` says what a node holds of the whole module's state, if it does.
    """

    def __init__(self, state_of: Callable[[Any], State | None]):
        self._state_of = state_of

    def fill(self, module: nn.Module, path: str, steps: list[Any], inputs: list[Any],
             output: Any) -> fx.Graph:
        """The graph of `module`, which is at `path`; makes the modules below it. `output` is a
        structure of nodes."""
        graph = fx.Graph()
        values: dict[Any, Any] = {}
        for node in inputs:
            values[node] = graph.placeholder(node.name)
            values[node].name = node.name
            values[node].meta = dict(node.meta)

        def value(node: Any) -> Any:
            if node not in values:
                values[node] = self._attribute(graph, module, path, node)
            return values[node]
        counts: dict[str, int] = {}
        for child, run in self._runs(steps, path):
            if child is None:
                map_arg((run[0].args, run[0].kwargs), value)
                values[run[0]] = graph.node_copy(run[0], value)
                continue
            name = child[len(path) + 1:] if path else child
            counts[name] = counts.get(name, 0) + 1
            suffix = "" if counts[name] == 1 else f"@{counts[name] - 1}"
            self._call(graph, module, child, name + suffix, run, value, values)
        graph.output(map_arg(output, value))
        return graph

    def _child(self, node: Any, path: str) -> str | None:
        """The module below `path` that a step belongs to."""
        prefix = f"{path}." if path else ""
        inside = [name for name in node.meta.get("nn_module_stack", ()) if name != path
                  and name.startswith(prefix)]
        return inside[0] if inside else None

    def _runs(self, steps: list[Any], path: str) -> Iterator[tuple[str | None, list[Any]]]:
        """Steps that follow each other in one module below."""
        run: list[Any] = []
        current: str | None = None
        for node in steps:
            child = self._child(node, path)
            if run and (child is None or child != current):
                yield current, run
                run = []
            current = child
            run.append(node)
            if child is None:
                yield None, run
                run = []
        if run:
            yield current, run

    def _call(self, graph: fx.Graph, module: nn.Module, path: str, name: str, run: list[Any],
              value: Any, values: dict[Any, Any]) -> None:
        """A submodule of these steps, and the call of it."""
        inside = set(run)
        needed = [n for node in run for n in node.all_input_nodes if n not in inside]
        inputs = [n for n in dict.fromkeys(needed) if not self._owned(n, path)]
        results = [n for n in run if any(u not in inside for u in n.users)]
        holder: nn.Module = module
        *parents, last = name.split(".")
        for part in parents:
            if part not in holder._modules:
                holder.add_module(part, nn.Module())
            holder = holder._modules[part]
        made = InterpreterModule(fx.Graph())
        for key, existing in (holder._modules[last]._modules.items()
                              if last in holder._modules else ()):
            made.add_module(key, existing)
        holder._modules[last] = made
        made.graph = self.fill(made, path, run, inputs,
                               results[0] if len(results) == 1 else tuple(results))
        made.graph.owning_module = made
        called = graph.create_node("call_module", name, tuple([value(n) for n in inputs]), {},
                                   name.replace(".", "_").replace("@", "_"))
        if len(results) == 1:
            called.meta = dict(results[0].meta)
            values[results[0]] = called
        else:
            for i, node in enumerate(results):
                values[node] = graph.call_function(operator.getitem, (called, i))

    def _owned(self, node: Any, path: str) -> bool:
        state = self._state_of(node)
        return state is not None and (state.name or "").startswith(f"{path}.")

    def _attribute(self, graph: fx.Graph, module: nn.Module, path: str, node: Any) -> Any:
        """The state that a node holds, as an attribute."""
        state = self._state_of(node)
        assert state is not None, f"{node} is computed by no step"
        name = state.name[len(path) + 1:] if path else state.name
        *parents, last = name.split(".")
        holder = module
        for part in parents:
            if part not in holder._modules:
                holder.add_module(part, InterpreterModule(fx.Graph()))
            holder = holder._modules[part]
        if state.kind is InputKind.PARAMETER:
            holder.register_parameter(last, state.value)
        elif state.kind is InputKind.BUFFER:
            holder.register_buffer(last, state.value, persistent=state.persistent)
        else:
            object.__setattr__(holder, last, state.value)
        first = next(iter(graph.nodes), None)
        made = graph.create_node("get_attr", name, name=name.replace(".", "_"))
        made.meta = dict(node.meta)
        if first is not None:
            last_input = graph.find_nodes(op="placeholder")
            (last_input[-1].append if last_input else first.prepend)(made)
        return made


class UnflattenedModule(nn.Module):
    """A program as nested modules. It is called as the module that was exported.

    >>> import flambeau as torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
    >>> unflatten(torch.export.export(model, (torch.ones(1, 2),)))
    UnflattenedModule(
      (0): InterpreterModule()
      (1): InterpreterModule()
    )
    """

    def __init__(self, export_module: Any, flat_args_adapter: FlatArgsAdapter | None = None):
        super().__init__()
        self._program, self._adapter = export_module, flat_args_adapter
        signature = export_module.module_call_graph[0].signature
        self._in_spec, self._out_spec = signature.in_spec, signature.out_spec
        self.module_call_graph = export_module.module_call_graph
        self._specs = {s.arg.name: s for s in export_module.graph_signature.input_specs}
        steps = [n for n in export_module.graph.nodes if n.op == "call_function"]
        inputs = [n for n in export_module.graph.find_nodes(op="placeholder")
                  if self._specs[n.name].kind is InputKind.USER_INPUT]
        self.graph = Outline(self._state_of).fill(
            self, "", steps, inputs, export_module.graph.output_node().args[0])
        self.graph.owning_module = self

    def _state_of(self, node: Any) -> State | None:
        """What an input holds of the module's state."""
        spec = self._specs.get(node.name) if node.op == "placeholder" else None
        if spec is None or spec.kind is InputKind.USER_INPUT:
            return None
        return State(spec.target, self._program.value_of(spec), spec.kind, bool(spec.persistent))

    # ---- calling them ---------------------------------------------------------------------------

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program."""
        leaves, spec = _pytree.tree_flatten((args, kwargs))
        if spec != self._in_spec:
            if self._adapter is None:
                raise TypeError("There is no flat args adapter specified. Are you sure you are "
                                "calling this with the right arguments? Input treespec: "
                                f"{spec}\nExported treespec: {self._in_spec}")
            leaves = self._adapter.adapt(self._in_spec, spec, leaves)
        results = fx.Interpreter(self, graph=self.graph).run(*leaves)
        return _pytree.tree_unflatten(list(results), self._out_spec)

    def print_readable(self, print_output: bool = True, include_stride: bool = False,
                       include_device: bool = False, colored: bool = False) -> str:
        """The code as a class; printed, unless told otherwise."""
        return _print_readable(self, "UnflattenedModule", print_output, include_stride,
                               include_device, colored)


def unflatten(module: Any, flat_args_adapter: FlatArgsAdapter | None = None) -> UnflattenedModule:
    """An exported program as nested modules, those that it was made of.

    >>> import flambeau as torch
    >>> program = torch.export.export(torch.nn.Sequential(torch.nn.ReLU()), (torch.ones(2),))
    >>> unflatten(program)(torch.tensor([-1., 2.]))
    tensor([0., 2.])
    """
    return UnflattenedModule(module, flat_args_adapter)
