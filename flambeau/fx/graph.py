"""`Graph`: a program as a list of nodes."""
from __future__ import annotations

import contextlib
import copy
import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from flambeau._support.symbolic_names import SymBool, SymFloat, SymInt
from flambeau.fx._codegen import (  # noqa: F401
    CodeGen,
    PythonCode,
    _BoxedCodeGen,
    _custom_builtins,
    _CustomBuiltin,
    _format_target,
    _override_sym_repr,
    _parse_stack_trace,
    _ParsedStackTrace,
    _PyTreeCodeGen,
    _PyTreeInfo,
    _register_custom_builtin,
    inplace_methods,
    magic_methods,
    reflectable_magic_methods,
)
from flambeau.fx._codegen import Namespace as _Namespace
from flambeau.fx._codegen import snake_case as _snake_case
from flambeau.fx.node import (  # noqa: F401
    Node,
    Target,
    _get_qualified_name,
    _type_repr,
    dtype_abbrs,
    map_arg,
)
from flambeau.fx.node import NodeList as _node_list

py_sym_types = (SymInt, SymFloat, SymBool)

_NO_DEFAULT: Any = inspect.Signature.empty


def _has_attribute(owner: Any, name: str) -> bool:
    for part in name.split("."):
        if not hasattr(owner, part):
            return False
        owner = getattr(owner, part)
    return True


class _InsertPoint:
    """Where new nodes go, as a context."""

    def __init__(self, graph: Graph, insert: Any):
        self.graph, self._outer = graph, graph._insert
        graph._insert = insert

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: Any) -> None:
        self.graph._insert = self._outer


class _Restored:
    """Gives back, at the end of a block, what changed the code before."""

    def __init__(self, codegen: CodeGen, before: Any):
        self._codegen, self._before = codegen, before

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: Any) -> None:
        self._codegen._body_transformer = self._before


class Graph:
    """A program as a list of nodes: parameters, calls, and what is returned.

    >>> import flambeau
    >>> graph = Graph()
    >>> x = graph.placeholder("x")
    >>> y = graph.call_function(flambeau.relu, (x,))
    >>> _ = graph.output(y)
    >>> print(graph)
    graph():
        %x : [num_users=1] = placeholder[target=x]
        %relu : [num_users=1] = call_function[target=torch.relu](args = (%x,), kwargs = {})
        return relu
    """

    def __init__(self, owning_module: Any = None, tracer_cls: Any = None,
                 tracer_extras: dict[str, Any] | None = None):
        self._root = Node(self, "", "root", "", (), {})
        self._insert = self._root.prepend
        self._len = 0
        self._graph_namespace = _Namespace()
        self._owning_module = owning_module
        self._tracer_cls, self._tracer_extras = tracer_cls, tracer_extras
        self._codegen: Any = CodeGen()
        self._co_fields: dict[str, Any] = {}

    @property
    def owning_module(self) -> Any:
        """The module whose attributes the graph names."""
        return self._owning_module

    @owning_module.setter
    def owning_module(self, mod: Any) -> None:
        self._owning_module = mod

    @property
    def nodes(self) -> _node_list:
        """The nodes, in order."""
        return _node_list(self)

    @property
    def _used_names(self) -> set[str]:
        return self._graph_namespace._used_names

    def output_node(self) -> Node:
        """The node that returns."""
        return next(n for n in reversed(self.nodes) if n.op == "output")

    def find_nodes(self, *, op: str, target: Any = None, sort: bool = True) -> list[Node]:
        """The nodes of an op, with a target."""
        if op == "call_function" and target is None:
            raise AssertionError("target must not be None for call_function op")
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    # ---- making nodes ---------------------------------------------------------------------------

    def create_node(self, op: str, target: Any, args: Any = None, kwargs: Any = None,
                    name: str | None = None, type_expr: Any = None) -> Node:
        """Add a node at the insertion point."""
        args, kwargs = () if args is None else args, {} if kwargs is None else kwargs
        if not isinstance(args, tuple):
            raise AssertionError(f"args must be a tuple, got {type(args)}")
        if not isinstance(kwargs, dict):
            raise AssertionError(f"kwargs must be a dict, got {type(kwargs)}")
        candidate = name if name is not None else self._target_to_str(target)
        given = self._graph_namespace.create_name(candidate, None)
        node = Node(self, given, op, target, args, kwargs, type_expr)
        if self.owning_module is not None:
            for hook in getattr(self.owning_module, "_create_node_hooks", ()):
                hook(node)
        self._insert(node)
        self._len += 1
        return node

    @staticmethod
    def _target_to_str(target: Any) -> str:
        name = target.__name__ if callable(target) else target
        if not isinstance(name, str):
            raise AssertionError(f"Expected target to be str, got {type(name)}")
        if name.startswith("__") and name.endswith("__"):
            name = name[2:-2]
        return _snake_case(name)

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = _NO_DEFAULT
                    ) -> Node:
        """A parameter of the program; `*args` and `**kwargs` too."""
        args = () if default_value is _NO_DEFAULT else (default_value,)
        return self.create_node("placeholder", name, args=args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """An attribute of the module."""
        owner = self.owning_module
        if owner is not None and not _has_attribute(owner, qualified_name):
            warnings.warn("Attempted to insert a get_attr Node with no underlying reference in the "
                          "owning GraphModule! Call GraphModule.add_submodule to add the necessary "
                          "submodule, GraphModule.add_parameter to add the necessary Parameter, or "
                          "nn.Module.register_buffer to add the necessary buffer", stacklevel=2)
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(self, module_name: str, args: Any = None, kwargs: Any = None,
                    type_expr: Any = None) -> Node:
        """A call of a submodule."""
        if self.owning_module is not None:
            self.owning_module.get_submodule(module_name)       # raises if there is none
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(self, method_name: str, args: Any = None, kwargs: Any = None,
                    type_expr: Any = None) -> Node:
        """A call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(self, the_function: Callable[..., Any], args: Any = None, kwargs: Any = None,
                      type_expr: Any = None, name: str | None = None) -> Node:
        """A call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def output(self, result: Any, type_expr: Any = None) -> Node:
        """What the program returns."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    # ---- changing the graph ---------------------------------------------------------------------

    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """New nodes go in front of `n`, or to the beginning; until the block ends if used so."""
        if n is None:
            return self.inserting_after(self._root)
        assert n.graph is self, "Node to insert before is not in graph."
        return _InsertPoint(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """New nodes go behind `n`, or to the end; until the block ends if used so."""
        if n is None:
            return self.inserting_before(self._root)
        assert n.graph is self, "Node to insert after is not in graph."
        last = [n]

        def insert(node: Node) -> None:
            last[0].append(node)
            last[0] = node
        return _InsertPoint(self, insert)

    def erase_node(self, to_erase: Node) -> None:
        """Take out a node that nobody uses."""
        if to_erase.users:
            raise RuntimeError(f"Tried to erase Node {to_erase} but it still had "
                               f"{len(to_erase.users)} users in the graph: {to_erase.users}!")
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            warnings.warn(f"erase_node({to_erase}) on an already erased node", stacklevel=2)
            return
        for hook in getattr(self.owning_module, "_erase_node_hooks", ()):
            hook(to_erase)
        to_erase._remove_from_list()
        to_erase._erased = True
        self._len -= 1
        to_erase._update_args_kwargs((), {})

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Take out what nobody uses and has no effect; has that changed anything?"""
        self.lint()
        impure = is_impure_node or Node.is_impure
        changed = False
        for node in list(reversed(self.nodes)):
            if not node.users and not impure(node):
                self.erase_node(node)
                changed = True
        return changed

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda n: n) -> Node:
        """A copy, in this graph, of a node of another; `arg_transform` maps the nodes it uses."""
        args, kwargs = map_arg((node.args, node.kwargs), arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = copy.copy(node.meta)
        return made

    def graph_copy(self, g: Graph, val_map: dict[Node, Any], return_output_node: bool = False
                   ) -> Any:
        """Copy all nodes of `g` but its output into this graph; gives what `g` returns."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                found = map_arg(node.args[0], lambda n: val_map[n])
                return (found, node) if return_output_node else found
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Graph:
        made = Graph(tracer_cls=self._tracer_cls)
        made._codegen = copy.deepcopy(self._codegen)
        values: dict[Node, Any] = {}
        found = made.graph_copy(self, values, return_output_node=True)
        if found is not None:
            result, old = found
            made.output(result, old.type).meta = copy.copy(old.meta)
        return made

    # ---- checks and text ------------------------------------------------------------------------

    def lint(self) -> None:
        """Check that nodes belong here, come before their users, and name what is there."""
        seen: set[Node] = set()
        names: set[str] = set()
        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            for used in node.all_input_nodes:
                if used.graph is not self:
                    raise RuntimeError(f"Argument '{used}' of Node '{node}' does not belong to "
                                       "this Graph, but was used as an argument! If you are "
                                       "copying nodes from another graph, make sure to use "
                                       "``arg_transform`` on node_copy() to remap values")
                if used not in seen:
                    raise RuntimeError(f"Argument '{used}' of Node '{node}' was used before it "
                                       "has been defined! Please check that Nodes in the graph "
                                       f"are topologically ordered\n{self}")
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            seen.add(node)
            names.add(node.name)
            if node.op in ("get_attr", "call_module") and self.owning_module is not None:
                self._lint_target(node)

    def _lint_target(self, node: Node) -> None:
        found = self.owning_module
        for part in node.target.split("."):
            if not hasattr(found, part):
                raise RuntimeError(f"Node {node} target {node.target} references nonexistent "
                                   f"attribute {part} of {type(found).__name__}")
            found = getattr(found, part)

    def python_code(self, root_module: str, *, verbose: bool = False,
                    include_stride: bool = False, include_device: bool = False,
                    colored: bool = False, expanded_def: bool = False, record_func: bool = False,
                    additional_meta: list[str] | None = None) -> PythonCode:
        """The graph as code, in which the module is called `root_module`.

        `verbose` code says what values look like, and where the steps come from.
        """
        names = _Namespace()
        with self._named_in_code(names):
            return self._codegen._gen_python_code(
                self.nodes, root_module, names, verbose=verbose, include_stride=include_stride,
                include_device=include_device, colored=colored, expanded_def=expanded_def,
                record_func=record_func, additional_meta=additional_meta)

    @contextlib.contextmanager
    def _named_in_code(self, names: _Namespace) -> Iterator[None]:
        """Inside, nodes are shown by variables that hide no name which the code needs: a node that
        is called `sum` is `sum_1`."""
        before = [(node, node._repr_fn) for node in self.nodes]
        for node, _ in before:
            node._repr_fn = lambda one: names.create_name(one.name, one)
        try:
            yield
        finally:
            for node, shown in before:
                node._repr_fn = shown

    # ---- how it becomes a function --------------------------------------------------------------

    def set_codegen(self, codegen: CodeGen) -> None:
        """Choose what makes the code."""
        self._codegen = codegen

    def process_inputs(self, *args: Any) -> Any:
        """The inputs of the graph, of the arguments of a call."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """The result of a call, of that of the graph."""
        return self._codegen.process_outputs(out)

    def on_generate_code(self, make_transformer: Callable[[Any], Any]) -> Any:
        """Register what changes the lines of the code: `make_transformer(the one before)` gives a
        function of a list of lines. As a context, the change ends with the block."""
        before = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(before)
        return _Restored(self._codegen, before)

    def print_tabular(self) -> None:
        """Print the nodes as a table, with the package tabulate."""
        try:
            from tabulate import tabulate
        except ImportError:
            print("`print_tabular` relies on the library `tabulate`, which could not be found on "
                  "this machine. Run `pip install tabulate` to install the library.")
            raise
        rows = [[n.op, n.name, n.target, n.args, n.kwargs] for n in self.nodes]
        print(tabulate(rows, headers=["opcode", "name", "target", "args", "kwargs"]))

    def __str__(self) -> str:
        lines = [node.format_node() for node in self.nodes]
        return "graph():" + "".join(f"\n    {line}" for line in lines if line)

    __repr__ = object.__repr__

    # ---- sizes ----------------------------------------------------------------------------------

    def create_size_node(self, tensor_node: Node, dim: int) -> Node:
        """The size of a tensor along a dimension."""
        return self._measure("sym_size", tensor_node, dim)

    def create_stride_node(self, tensor_node: Node, dim: int) -> Node:
        """The stride of a tensor along a dimension."""
        return self._measure("sym_stride", tensor_node, dim)

    def create_storage_offset_node(self, tensor_node: Node) -> Node:
        """Where in its memory a tensor begins."""
        return self._measure("sym_storage_offset", tensor_node)

    def _measure(self, name: str, *args: Any) -> Node:
        import flambeau
        packet = getattr(flambeau.ops.aten, name)
        return self.call_function(packet.int if len(args) > 1 else packet.default, args)


__all__ = ["CodeGen", "Graph", "PythonCode"]
