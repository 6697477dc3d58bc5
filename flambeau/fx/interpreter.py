"""Running a graph node by node: as it is, or to make another graph."""
from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from typing import Any

from flambeau import nn
from flambeau.fx import traceback as fx_traceback
from flambeau.fx._codegen import last_uses
from flambeau.fx._lazy_graph_module import _make_graph_module
from flambeau.fx._symbolic_trace import Tracer
from flambeau.fx.graph import Graph
from flambeau.fx.graph_module import GraphModule
from flambeau.fx.node import Node, map_aggregate, map_arg
from flambeau.fx.proxy import Proxy


def _say_where(error: Exception, node: Node) -> None:
    """Add to an error's message which node raised it, and the program's line behind the node."""
    said = f"{error.args[0]}\n\n" if error.args else ""
    error.args = (f"{said}While executing {node.format_node()}\nOriginal traceback:\n"
                  f"{node.stack_trace}\nUse tlparse to see full graph. (https://github.com/pytorch/"
                  "tlparse?tab=readme-ov-file#tlparse-parse-structured-pt2-logs)", *error.args[1:])


class Interpreter:
    """Runs a `GraphModule` node by node; override a method to do something else for an op.

    >>> import flambeau
    >>> from flambeau import fx
    >>> class Negate(Interpreter):
    ...     def call_function(self, target, args, kwargs):
    ...         return -super().call_function(target, args, kwargs)
    >>> Negate(fx.symbolic_trace(lambda x: x + 1)).run(flambeau.ones(1))
    tensor([-2.])
    """

    def __init__(self, module: nn.Module, garbage_collect_values: bool = True,
                 graph: Graph | None = None):
        self.module = module
        self.submodules = dict(module.named_modules())
        self.name, self.extra_traceback = "Interpreter", True
        self.graph = module.graph if graph is None else graph
        self.garbage_collect_values = garbage_collect_values
        self.env: dict[Node, Any] = {}
        self.user_to_last_uses: dict[Node, list[Node]] = {}
        if garbage_collect_values:
            self.user_to_last_uses = last_uses(self.graph.nodes)

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None,
            enable_io_processing: bool = True) -> Any:
        """Run the graph on arguments; `initial_env` gives values of nodes that are not run."""
        self.env = {} if initial_env is None else dict(initial_env)
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self.args_iter: Iterator[Any] = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if not self.extra_traceback:
                    raise
                _say_where(error, node)
                if isinstance(error, KeyError):       # which would show its message as a key
                    raise RuntimeError(*error.args) from error
                raise
            for used in self.user_to_last_uses.get(node, ()):
                del self.env[used]
            if node.op == "output":
                found = self.env[node]
                return self.graph.process_outputs(found) if enable_io_processing else found
        return None

    @contextlib.contextmanager
    def _set_current_node(self, node: Node) -> Iterator[None]:
        with fx_traceback.set_current_meta(node, f"Interpreter_{type(self).__name__}"):
            yield

    def boxed_run(self, args_list: list[Any]) -> Any:
        """`run`, which empties the list of arguments."""
        placeholders = [n for n in self.graph.nodes if n.op == "placeholder"]
        if len(args_list) != len(placeholders):
            what = "missing" if len(args_list) < len(placeholders) else "extra"
            raise RuntimeError(f"Interpreter.boxed_run expected {len(placeholders)} arguments for "
                               f"placeholders but received {len(args_list)} ({what} arguments)")
        env = dict(zip(placeholders, args_list))
        args_list.clear()
        return self.run(initial_env=env)

    def run_node(self, n: Node) -> Any:
        """The value of a node."""
        with self._set_current_node(n):
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: str, args: Any, kwargs: Any) -> Any:
        """An argument."""
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(f"Expected positional argument for parameter {target}, but one was "
                               "not passed in!") from None

    def get_attr(self, target: str, args: Any, kwargs: Any) -> Any:
        """An attribute of the module."""
        return self.fetch_attr(target)

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """A call of a function."""
        return target(*args, **kwargs)

    def call_method(self, target: str, args: Any, kwargs: Any) -> Any:
        """A call of a method of the first argument."""
        return getattr(args[0], target)(*args[1:], **kwargs)

    def call_module(self, target: str, args: Any, kwargs: Any) -> Any:
        """A call of a submodule."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: str, args: Any, kwargs: Any) -> Any:
        """What is returned."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """The attribute of a dotted name."""
        found: Any = self.module
        parts = target.split(".")
        for i, part in enumerate(parts):
            if not hasattr(found, part):
                raise RuntimeError(f"Node referenced nonexistent target {'.'.join(parts[:i + 1])}")
            found = getattr(found, part)
        return found

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The values of a node's arguments."""
        return (self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n))

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """Arguments with values in place of nodes."""
        def value(used: Node) -> Any:
            if used not in self.env:
                raise RuntimeError(f"Node {n} referenced nonexistent value {used}! Run "
                                   "Graph.lint() to diagnose such issues")
            return self.env[used]
        return map_arg(args, value)


class Transformer(Interpreter):
    """An `Interpreter` on proxies: `transform()` gives a module whose graph is what it has done.

    >>> import flambeau
    >>> from flambeau import fx
    >>> class Swap(Transformer):
    ...     def call_function(self, target, args, kwargs):
    ...         target = flambeau.mul if target is flambeau.add else target
    ...         return super().call_function(target, args, kwargs)
    >>> module = Swap(fx.symbolic_trace(lambda x: flambeau.add(x, x))).transform()
    >>> module(flambeau.tensor([3.]))
    tensor([9.])
    """

    def __init__(self, module: nn.Module):
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)

        class TransformerTracer(Tracer):
            def __init__(self, graph: Graph):
                super().__init__()
                self.graph, self.root = graph, nn.Module()

            def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
                return True
        self.tracer = TransformerTracer(self.new_graph)
        self.tracer.root = module

    def placeholder(self, target: str, args: Any, kwargs: Any) -> Proxy:
        """A proxy for an argument."""
        default = {"default_value": args[0]} if args else {}
        return Proxy(self.new_graph.placeholder(target, **default), self.tracer)

    def get_attr(self, target: str, args: Any, kwargs: Any) -> Proxy:
        """A proxy for an attribute."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: str, args: Any, kwargs: Any) -> Any:
        """A proxy for what a submodule gives."""
        module = self.fetch_attr(target)
        return self.tracer.call_module(module, module.forward, args, kwargs)

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """A proxy for what a function gives."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The new module."""
        with fx_traceback.preserve_node_meta():
            result = super().run(enable_io_processing=False)
        if result is not None:
            old = self.graph.output_node()
            returned = map_aggregate(result, lambda a: a.node if isinstance(a, Proxy) else a)
            self.new_graph.output(returned, old.type).meta = copy.copy(old.meta)
        return _make_graph_module(self.module, self.new_graph, type(self.module).__name__)


__all__ = ["Interpreter", "Transformer"]
