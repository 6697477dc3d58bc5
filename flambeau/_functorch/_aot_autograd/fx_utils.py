"""Finding inputs and gradients in joint graphs that say what these are (`node.meta["desc"]`)."""
from __future__ import annotations

from typing import Any

from flambeau.fx import Graph, Node


def _described(graph: Graph) -> list[tuple[Any, Node]]:
    return [(node.meta["desc"], node) for node in graph.find_nodes(op="placeholder")
            if "desc" in node.meta]


def get_plain_input_and_grad_nodes(graph: Graph) -> dict[Any, tuple[Node, Node | None]]:
    """The placeholders of plain inputs, by what they are, with the node of each one's gradient."""
    output = graph.output_node()
    grads = {getattr(desc, "grad_of", None): node for desc, node in zip(
        output.meta.get("desc", ()), output.args[0]) if isinstance(node, Node)}
    return {desc: (node, grads.get(desc)) for desc, node in _described(graph)
            if type(desc).__name__ == "PlainAOTInput"}


def get_param_and_grad_nodes(graph: Graph) -> dict[Any, tuple[Node, Node | None]]:
    """The placeholders of parameters, by what they are, with the node of each one's gradient."""
    output = graph.output_node()
    grads = {getattr(desc, "grad_of", None): node for desc, node in zip(
        output.meta.get("desc", ()), output.args[0]) if isinstance(node, Node)}
    return {desc: (node, grads.get(desc)) for desc, node in _described(graph)
            if type(desc).__name__ == "ParamAOTInput"}


__all__ = ["get_param_and_grad_nodes", "get_plain_input_and_grad_nodes"]
