"""Finding inputs and gradients in joint graphs that say what these are (`node.meta["desc"]`)."""
from __future__ import annotations

from typing import Any

from flambeau._functorch._aot_autograd.descriptors import (
    GradAOTOutput,
    ParamAOTInput,
    PlainAOTInput,
)
from flambeau.fx import Graph, Node


def _inputs_and_grads(graph: Graph, kind: type) -> dict[Any, tuple[Node, Node | None]]:
    output = graph.output_node()
    grads: dict[Any, Node] = {
        what.grad_of: node for what, node in zip(output.meta.get("desc", ()), output.args[0])
        if isinstance(what, GradAOTOutput) and isinstance(node, Node)}
    described = ((node.meta.get("desc"), node) for node in graph.find_nodes(op="placeholder"))
    return {what: (node, grads.get(what)) for what, node in described if isinstance(what, kind)}


def get_plain_input_and_grad_nodes(graph: Graph) -> dict[Any, tuple[Node, Node | None]]:
    """The placeholders of plain inputs, by what they are, with the node of each one's gradient."""
    return _inputs_and_grads(graph, PlainAOTInput)


def get_param_and_grad_nodes(graph: Graph) -> dict[Any, tuple[Node, Node | None]]:
    """The placeholders of parameters, by what they are, with the node of each one's gradient."""
    return _inputs_and_grads(graph, ParamAOTInput)


__all__ = ["get_param_and_grad_nodes", "get_plain_input_and_grad_nodes"]
