"""Patterns that name their nodes, so that matches can be asked for what stands in their place."""
from __future__ import annotations

from flambeau.fx.graph import Graph
from flambeau.fx.graph_module import GraphModule
from flambeau.fx.node import Node
from flambeau.fx.passes.utils.matcher_utils import InternalMatch, SubgraphMatcher
from flambeau.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["SubgraphMatcherWithNameNodeMap"]


def _split_to_graph_and_name_node_map(gm: GraphModule) -> tuple[GraphModule, dict[str, Node]]:
    """The pattern without the dictionary that it returns last, and that dictionary of its nodes."""
    output = gm.graph.output_node()
    spec = gm._out_spec
    if spec is None:
        raise AssertionError("gm._out_spec is None")
    results = tree_unflatten(output.args[0], spec)
    if not isinstance(results, tuple):
        raise AssertionError("Expecting the pattern graph to return a tuple")
    if len(results) < 2:
        raise AssertionError("Expecting the pattern graph to have at least two outputs")
    *kept, names = results
    if not isinstance(names, dict):
        raise AssertionError("Expecting the input graph to have a dict output as the last element")
    flat, spec = tree_flatten(kept)
    output.args = (flat,)
    codegen = gm.graph._codegen
    codegen.pytree_info = codegen.pytree_info._replace(out_spec=spec)
    gm.recompile()
    return gm, names


class SubgraphMatcherWithNameNodeMap(SubgraphMatcher):
    """A matcher whose pattern returns a dictionary of nodes by name after its results; in a match
    `name_node_map` says which nodes of the graph those are."""

    def __init__(self, pattern_gm: GraphModule, match_output: bool = False,
                 match_placeholder: bool = False, remove_overlapping_matches: bool = True,
                 ignore_literals: bool = False):
        pattern_gm, self.name_node_map = _split_to_graph_and_name_node_map(pattern_gm)
        super().__init__(pattern_gm.graph, match_output, match_placeholder,
                         remove_overlapping_matches, ignore_literals)

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """All places where the pattern is found."""
        found = super().match(graph, node_name_match)
        for each in found:
            each.name_node_map |= {name: each.nodes_map[node]
                                   for name, node in self.name_node_map.items()}
        return found
