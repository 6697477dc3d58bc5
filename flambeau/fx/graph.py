"""`Graph`: a program as a list of nodes."""
from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from flambeau.fx._code import Namespace, PythonCode, python_code, snake_case
from flambeau.fx.node import Node, NodeList, map_arg

_NO_DEFAULT = object()


class _InsertPoint:
    """Where new nodes go, as a context."""

    def __init__(self, graph: Graph, insert: Any):
        self.graph, self._outer = graph, graph._insert
        graph._insert = insert

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: Any) -> None:
        self.graph._insert = self._outer


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
        self._names = Namespace()
        self.owning_module = owning_module
        self._tracer_cls, self._tracer_extras = tracer_cls, tracer_extras

    @property
    def nodes(self) -> NodeList:
        """The nodes, in order."""
        return NodeList(self)

    def output_node(self) -> Node:
        """The node that returns."""
        return next(n for n in reversed(self.nodes) if n.op == "output")

    def find_nodes(self, *, op: str, target: Any = None, sort: bool = True) -> list[Node]:
        """The nodes of an op, with a target."""
        if op == "call_function":
            assert target is not None, "target must be provided for call_function"
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    # ---- making nodes ---------------------------------------------------------------------------

    def create_node(self, op: str, target: Any, args: Any = None, kwargs: Any = None,
                    name: str | None = None, type_expr: Any = None) -> Node:
        """Add a node at the insertion point."""
        args, kwargs = () if args is None else args, {} if kwargs is None else kwargs
        assert isinstance(args, tuple), "args must be a tuple"
        assert isinstance(kwargs, dict), "kwargs must be a dict"
        candidate = name if name is not None else self._target_to_str(target)
        node = Node(self, "", op, target, args, kwargs, type_expr)
        node.name = self._names.create_name(candidate, None)
        self._insert(node)
        self._len += 1
        return node

    @staticmethod
    def _target_to_str(target: Any) -> str:
        name = target.__name__ if callable(target) else target
        if name.startswith("__") and name.endswith("__"):
            name = name[2:-2]
        return snake_case(name)

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = _NO_DEFAULT
                    ) -> Node:
        """A parameter of the program; `*args` and `**kwargs` too."""
        args = () if default_value is _NO_DEFAULT else (default_value,)
        return self.create_node("placeholder", name, args=args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """An attribute of the module."""
        self._check_attribute(qualified_name)
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(self, module_name: str, args: Any = None, kwargs: Any = None,
                    type_expr: Any = None) -> Node:
        """A call of a submodule."""
        self._check_attribute(module_name)
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def _check_attribute(self, name: str) -> None:
        found = self.owning_module
        for part in name.split(".") if found is not None else ():
            if not hasattr(found, part):
                raise AttributeError(f"{type(found).__name__} has no attribute `{part}`")
            found = getattr(found, part)

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
            return
        to_erase._unlink()
        to_erase._erased = True
        self._len -= 1
        to_erase._set((), {})

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

    def python_code(self, root_module: str, **options: Any) -> PythonCode:
        """The graph as code, in which the module is called `root_module`."""
        return python_code(self, root_module)

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
        returned = [""]
        lines = [node.format_node(None, returned) for node in self.nodes]
        return f"graph(){returned[0]}:" + "".join(f"\n    {line}" for line in lines if line)

    __repr__ = object.__repr__
