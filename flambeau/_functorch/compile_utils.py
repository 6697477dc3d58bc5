"""Small passes over graphs of ops."""
from __future__ import annotations

import operator
from typing import Any

from flambeau.fx import Graph, GraphModule, Node


def raise_getitems(gm: GraphModule) -> GraphModule:
    """Move each `getitem` right behind what it takes a part of.

    >>> import flambeau
    >>> from flambeau.fx.experimental.proxy_tensor import make_fx
    >>> gm = make_fx(lambda x: x.sort())(flambeau.ones(2))
    >>> [n.name for n in raise_getitems(gm).graph.nodes]
    ['x_1', 'sort', 'getitem', 'getitem_1', 'output']
    """
    for node in list(reversed(gm.graph.nodes)):
        if node.op == "call_function" and node.target is operator.getitem:
            node.args[0].append(node)
    gm.recompile()
    return gm


def fx_graph_cse(fx_g: Graph) -> Graph:
    """The graph with what is computed twice computed once."""
    from flambeau import nn
    from flambeau.fx.passes.dialect.common.cse_pass import CSEPass
    return CSEPass()(GraphModule(nn.Module(), fx_g)).graph_module.graph


def strip_overloads(gm: GraphModule) -> None:
    """Let nodes call packets, not overloads."""
    for node in gm.graph.nodes:
        if hasattr(node.target, "overloadpacket"):
            node.target = node.target.overloadpacket
    gm.recompile()


def get_placeholders(graph: Graph) -> list[Node]:
    """The inputs of a graph."""
    return graph.find_nodes(op="placeholder")


def get_outputs(graph: Graph) -> list[Any]:
    """What a graph gives, flat."""
    from flambeau.utils import _pytree
    return _pytree.tree_leaves(graph.output_node().args[0])


__all__ = ["fx_graph_cse", "get_outputs", "get_placeholders", "raise_getitems", "strip_overloads"]
