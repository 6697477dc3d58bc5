"""The nodes that a graph has in place of one call or one module: partitions by their source."""
from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from flambeau.fx.graph import Graph
from flambeau.fx.node import Node

__all__ = ["SourcePartition", "check_subgraphs_connected", "get_source_partitions"]

logger = logging.getLogger(__name__)


@dataclass
class SourcePartition:
    """The nodes of one source, and which of them take from others and give to them."""
    nodes: list[Node]
    source: Any
    input_nodes: list[Node] = field(default_factory=list)
    output_nodes: list[Node] = field(default_factory=list)
    params: list[Node] = field(default_factory=list)


def get_source_partitions(graph: Graph, wanted_sources: list[Any],
                          filter_fn: Callable[[Node], bool] | None = None
                          ) -> dict[Any, list[SourcePartition]]:
    """The partitions of each wanted source: a function, or a class of modules; with a filter those
    all of whose nodes pass it.

    A node's metadata say where it comes from: `source_fn_stack`, `torch_fn`, `nn_module_stack`.

    >>> import flambeau
    >>> from flambeau import nn
    >>> model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    >>> graph = flambeau.export.export(model, (flambeau.ones(1, 2),)).module().graph
    >>> found = get_source_partitions(graph, [nn.Linear])
    >>> [part.output_nodes for part in found[nn.Linear]]
    [[linear]]
    """
    found: dict[Any, dict[str, list[Node]]] = {}
    for node in graph.nodes:
        origin = _origin(node, wanted_sources)
        if origin is not None:
            source, name = origin
            found.setdefault(source, {}).setdefault(name, []).append(node)
    return {source: [_partition(nodes, source) for nodes in parts.values()
                     if filter_fn is None or all(map(filter_fn, nodes))]
            for source, parts in found.items()}


def _origin(node: Node, wanted: list[Any]) -> tuple[Any, str] | None:
    """Which wanted source a node comes from, and the name of the call or module."""
    stack = node.meta.get("source_fn_stack")
    if stack is not None:
        name, source = stack[-1][:2]
        return (source, name) if source in wanted else None
    if (traced := node.meta.get("torch_fn")) is not None:
        name, source = traced[0], traced[1].split(".")[1]
        if source in wanted:
            return source, name
    modules = node.meta.get("nn_module_stack")
    if not modules or node.op != "call_function":
        return None
    name, kind = list(modules.values())[-1]
    for source in wanted:
        if kind == source or (isinstance(source, type) and (
                issubclass(kind, source) if isinstance(kind, type) else
                kind == f"{source.__module__}.{source.__qualname__}".replace(
                    "flambeau", "torch", 1))):
            return source, name
    return None


def _partition(nodes: list[Node], source: Any) -> SourcePartition:
    params = [node for node in nodes if node.op == "get_attr"]
    inputs = [used for node in nodes for used in node.args
              if isinstance(used, Node) and used not in nodes and used.op != "get_attr"]
    return SourcePartition(
        nodes, source, list(dict.fromkeys(inputs)),
        [node for node in nodes if node not in params
         and any(user not in nodes for user in node.users)], params)


def check_subgraphs_connected(subgraph1: SourcePartition, subgraph2: SourcePartition) -> bool:
    """Does the second take something that the first gives?"""
    return any(node in subgraph1.nodes for user in subgraph2.nodes for node in user.args
               if isinstance(node, Node))
