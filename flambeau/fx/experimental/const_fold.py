"""Folding of constants: what a graph computes of parameters alone is computed once."""
from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

import flambeau
from flambeau import nn
from flambeau.fx._symbolic_trace import symbolic_trace
from flambeau.fx.graph import Graph
from flambeau.fx.graph_module import GraphModule
from flambeau.fx.node import Node, map_arg

_NAME = "_FX_CONST_FOLDED_ATTRS"


class FoldedGraphModule(GraphModule):
    """A graph that reads constants which a second graph, `const_subgraph_module`, computes: at the
    first call, or by `run_folding`. That is None if there is nothing to fold."""

    def __init__(self, root: Any, graph: Graph, const_subgraph: Graph | None = None,
                 fx_const_folded_attrs_name: str | None = None,
                 device_for_folded_attrs: str = "cuda"):
        super().__init__(root, graph)
        self.const_subgraph_module = None if const_subgraph is None \
            else GraphModule(root, const_subgraph)
        self.has_folding_been_run = False
        self.fx_const_folded_attrs_name = fx_const_folded_attrs_name
        self.device_for_folded_attrs = device_for_folded_attrs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.has_folding_been_run:
            self.run_folding()
        return super().__call__(*args)

    def run_folding(self) -> None:
        """Compute the constants."""
        if self.const_subgraph_module is None or self.fx_const_folded_attrs_name is None:
            return
        if self.has_folding_been_run:
            raise AssertionError("the constants have been folded")
        self.has_folding_been_run = True
        found = self.const_subgraph_module()
        folded: Any = nn.ParameterList([_parameter(t) for t in found]) \
            if isinstance(found, tuple) else _parameter(found)
        setattr(self, self.fx_const_folded_attrs_name, folded)


def _parameter(value: Any) -> nn.Parameter:
    value = value if isinstance(value, flambeau.Tensor) else flambeau.tensor(value)
    return nn.Parameter(value.detach(), requires_grad=value.requires_grad)


def get_unique_attr_name_in_module(mod_traced: GraphModule, name: str) -> str:
    """`name`, with a number if the module has something of that name.

    >>> get_unique_attr_name_in_module(nn.Linear(1, 1), "weight")
    'weight_1'
    """
    name = re.sub(r"^\d", r"_\g<0>", re.sub(r"[^0-9a-zA-Z_]", "_", name))
    while hasattr(mod_traced, name):
        numbered = re.match(r"(.*)_(\d+)$", name)
        name = f"{name}_1" if numbered is None else f"{numbered[1]}_{int(numbered[2]) + 1}"
    return name


def split_const_subgraphs(module: nn.Module | GraphModule,
                          skip_folding_node_fn: Callable[[Node], bool] | None = None,
                          device_for_folded_attrs: str = "cpu") -> FoldedGraphModule:
    """The module as a graph without what depends on no input, and the graph of that.

    Nodes of which `skip_folding_node_fn` says so are not folded, nor are those with side effects.

    >>> class Scaled(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.scale = nn.Parameter(flambeau.ones(1))
    ...     def forward(self, x):
    ...         return x * self.scale.exp()
    >>> split_const_subgraphs(Scaled()).const_subgraph_module is None
    False
    """
    traced = module if isinstance(module, GraphModule) else symbolic_trace(module)
    foldable = _foldable(traced.graph, skip_folding_node_fn)
    results = [n for n in traced.graph.nodes
               if n in foldable and any(user not in foldable for user in n.users)]
    if not results:
        return FoldedGraphModule(traced, traced.graph)
    name = get_unique_attr_name_in_module(traced, _NAME)
    root: dict[str, Any] = {node.target: operator.attrgetter(node.target)(traced)
                            for node in traced.graph.nodes
                            if node.op in ("get_attr", "call_module")}
    root[name] = nn.Parameter(flambeau.empty(0)) if len(results) == 1 else nn.ParameterList()
    return FoldedGraphModule(root, _without_constants(traced.graph, foldable, results, name),
                             _of_constants(traced.graph, foldable, results), name,
                             device_for_folded_attrs)


def _foldable(graph: Graph, skip: Callable[[Node], bool] | None) -> set[Node]:
    """The nodes that compute something of attributes and of one another alone."""
    found: set[Node] = set()
    for node in graph.nodes:
        if node.op in ("placeholder", "output", "get_attr") or node.is_impure():
            continue
        sources = node.all_input_nodes
        if sources and all(s.op == "get_attr" or s in found for s in sources) \
                and not (skip is not None and skip(node)):
            found.add(node)
    return found


def _of_constants(graph: Graph, foldable: set[Node], results: list[Node]) -> Graph:
    copied = Graph()
    copies: dict[Node, Node] = {}
    for node in graph.nodes:
        if node.op == "get_attr" and any(u in foldable for u in node.users):
            place = copied.placeholder(node.name)       # whose name the attribute does not get
            copies[node] = copied.node_copy(node, copies.__getitem__)
            copied.erase_node(place)
        elif node in foldable:
            copies[node] = copied.node_copy(node, copies.__getitem__)
    values = tuple([copies[n] for n in results])
    copied.output(values[0] if len(values) == 1 else values)
    return copied


def _without_constants(graph: Graph, foldable: set[Node], results: list[Node],
                       name: str) -> Graph:
    rest, copies = Graph(), {}
    holder = None
    for node in graph.nodes:
        if node in results:
            holder = holder or rest.get_attr(name)
            copy = holder if len(results) == 1 else rest.call_function(
                operator.getitem, (holder, results.index(node)))
            copy.meta = {**node.meta}
            copies[node] = copy
        elif node.op == "output":
            copy = rest.output(map_arg(node.args[0], copies.__getitem__), node.type)
            copy.meta = {**node.meta}
        elif node not in foldable and not (
                node.op == "get_attr" and node.users and all(u in foldable for u in node.users)):
            copies[node] = rest.node_copy(node, copies.__getitem__)
    return rest


__all__ = ["FoldedGraphModule", "get_unique_attr_name_in_module", "split_const_subgraphs"]
