"""Other targets for the nodes of a graph, and the bytes that nodes take."""
from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import flambeau
from flambeau import Tensor
from flambeau.fx.graph_module import GraphModule
from flambeau.fx.node import Node
from flambeau.fx.passes.shape_prop import ShapeProp, TensorMetadata


class size_bytes(NamedTuple):
    """The bytes of what a node gives, and of that and its parameters."""

    output_size: int
    total_size: int


def replace_target_nodes_with(fx_module: GraphModule, old_op: str, old_target: Any, new_op: str,
                              new_target: Any) -> None:
    """Let all nodes of that kind and target be of another kind and target."""
    graph = fx_module.graph
    for node in list(graph.nodes):
        if node.op == old_op and node.target == old_target:
            with graph.inserting_after(node):
                made = graph.create_node(new_op, new_target, node.args, node.kwargs, node.name)
            node.replace_all_uses_with(made)
            graph.erase_node(node)
            made.name = node.name


def get_size_of_all_nodes(fx_module: GraphModule, args: list[Tensor] | None = None) -> None:
    """Note at each node, as `size_bytes`, what it takes; `args` are given to learn shapes first."""
    if args is not None:
        ShapeProp(fx_module).propagate(*args)
    for node in fx_module.graph.nodes:
        if node.op == "output":
            break
        noted: Any = node
        noted.size_bytes = get_size_of_node(fx_module, node)


def get_tensor_meta(node: Node) -> TensorMetadata:
    """What is known of the tensor that a node gives."""
    found = node.meta.get("tensor_meta")
    if not found:
        raise RuntimeError(f"Node {node} has no tensor metadata associated with it! Check that "
                           "shape propagation has run.")
    return found


def get_size_of_node(fx_module: GraphModule, node: Node) -> size_bytes:
    """The bytes of what a node gives, and of that with the parameters of the module it calls."""
    parameters = 0
    if node.op == "call_module":
        module = dict(fx_module.named_modules())[str(node.target)]
        parameters = sum(p.numel() for _, p in module.named_parameters())
    known = get_tensor_meta(node)
    each, given = flambeau.tensor([], dtype=known.dtype).element_size(), prod(known.shape)
    return size_bytes(each * given, each * (given + parameters))


__all__ = ["get_size_of_all_nodes", "get_size_of_node", "get_tensor_meta",
           "replace_target_nodes_with", "size_bytes"]
