"""What the utilities of passes have in common."""
from __future__ import annotations

from flambeau import nn
from flambeau.fx import Graph, GraphModule
from flambeau.fx.passes.utils.matcher_utils import SubgraphMatcher


class HolderModule(nn.Module):
    """A module that holds others by name."""

    def __init__(self, d: dict[str, nn.Module]):
        super().__init__()
        for name, module in d.items():
            self.add_module(name, module)


def lift_subgraph_as_module(gm: GraphModule, subgraph: Graph, comp_name: str = "",
                            class_name: str = "GraphModule") -> tuple[GraphModule, dict[str, str]]:
    """A module of a part of another's graph, and what the names that it needs have become."""
    from flambeau.fx.graph_module import _assign_attr, _get_attr
    holder, names = HolderModule({}), {}
    for node in subgraph.nodes:
        if node.op in ("call_module", "get_attr"):
            _assign_attr(_get_attr(gm, node.target), holder, node.target)
            names[node.target] = f"{comp_name}.{node.target}"
    return GraphModule(holder, subgraph, class_name), names


def compare_graphs(left: Graph, right: Graph) -> bool:
    """Are two graphs the same, but for names?"""
    matches = SubgraphMatcher(left, match_output=True, match_placeholder=True).match(right)
    return len(matches) > 0


__all__ = ["HolderModule", "compare_graphs", "lift_subgraph_as_module"]
