"""Replacing parts of a graph that look like a pattern."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from flambeau import nn
from flambeau.fx._symbolic_trace import symbolic_trace
from flambeau.fx.graph import Graph
from flambeau.fx.graph_module import GraphModule, _assign_attr, _get_attr
from flambeau.fx.node import Node
from flambeau.fx.passes.utils.matcher_utils import InternalMatch, SubgraphMatcher

Filter = Callable[[InternalMatch, Graph, Graph], bool]
Maker = Callable[[InternalMatch, Graph, Graph], Graph]


class Match(NamedTuple):
    """Where a pattern was found: its last node, and its nodes with those that look like them."""
    anchor: Node
    nodes_map: dict[Node, Node]


@dataclass
class ReplacedPatterns:
    """A match, and the nodes that took its place."""
    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


def replace_pattern(gm: GraphModule, pattern: Any, replacement: Any) -> list[Match]:
    """Replace the parts of `gm` that look like `pattern`, a function or module, by `replacement`,
    one with the same parameters. Gives the matches.

    >>> import flambeau
    >>> gm = symbolic_trace(lambda x: flambeau.relu(x) + 1)
    >>> _ = replace_pattern(gm, lambda v: flambeau.relu(v), lambda v: flambeau.sigmoid(v))
    >>> gm(flambeau.zeros(1))
    tensor([1.5000])
    """
    return [Match(r.anchor, r.nodes_map)
            for r in replace_pattern_with_filters(gm, pattern, replacement)]


def replace_pattern_with_filters(gm: GraphModule, pattern: Any, replacement: Any = None,
                                 match_filters: list[Filter] | None = None,
                                 ignore_literals: bool = False,
                                 replacement_callback: Maker | None = None,
                                 node_name_match: str = "") -> list[ReplacedPatterns]:
    """`replace_pattern` of those matches that all `match_filters` accept.

    ignore_literals       numbers and strings in the pattern stand for any
    replacement_callback  gives the replacement of each match, in place of `replacement`
    node_name_match       nodes whose name contains this look like any
    """
    wanted, graph = _graph_of(pattern), gm.graph
    matcher = SubgraphMatcher(wanted, ignore_literals=ignore_literals)
    matches = [match for match in matcher.match(graph, node_name_match)
               if all(accept(match, graph, wanted) for accept in match_filters or ())]
    if replacement_callback is None:
        if replacement is None:
            raise AssertionError(
                "Must provide either a replacement GraphModule or a replacement callback")
        common = _graph_of(replacement)
    replaced: dict[Node, Node] = {}
    made = []
    for match in matches:
        new = common if replacement_callback is None \
            else replacement_callback(match, graph, wanted)
        copies = _put_in_place(graph, match, new, replaced)
        for node in reversed(wanted.nodes):
            if node.op not in ("placeholder", "output"):
                graph.erase_node(match.nodes_map[node])
        made.append(ReplacedPatterns(match.anchors[0], match.nodes_map, copies))
    gm.recompile()
    if isinstance(replacement, nn.Module):
        _copy_attributes(gm, replacement)
    return made


def _graph_of(pattern: Any) -> Graph:
    if isinstance(pattern, Graph):
        return pattern
    return (pattern if isinstance(pattern, GraphModule) else symbolic_trace(pattern)).graph


def _put_in_place(graph: Graph, match: InternalMatch, new: Graph, replaced: dict[Node, Node]
                  ) -> list[Node]:
    """Copy a replacement in front of the match's first user, and let the users have its values;
    gives the copied nodes. `replaced` says what took the place of values of earlier matches."""
    parameters = new.find_nodes(op="placeholder")
    if len(parameters) != len(match.placeholder_nodes):
        raise AssertionError("Placeholder count mismatch: "
                             f"{len(match.placeholder_nodes)} vs {len(parameters)}")
    for here, node in match.nodes_map.items():
        if isinstance(node, Node):
            match.nodes_map[here] = replaced.get(node, node)
    given = [replaced.get(node, node) if isinstance(node, Node) else node
             for node in match.placeholder_nodes]
    values: dict[Node, Any] = dict(zip(parameters, given))
    with graph.inserting_before(_first_after(graph, match.returning_nodes)):
        results = graph.graph_copy(new, values)
    results = (results,) if isinstance(results, Node) else results
    if len(results) != len(match.returning_nodes):
        raise AssertionError("Returning nodes count mismatch: "
                             f"{len(match.returning_nodes)} vs {len(results)}")
    for old, result in zip(match.returning_nodes, results):
        old.replace_all_uses_with(result)
        replaced[old] = result
    return [node for node in values.values() if node not in given]


def _first_after(graph: Graph, returned: list[Node]) -> Node:
    """The first node that uses one of these values; if none does, what follows the last of them."""
    users = {user for node in returned for user in node.users}
    last = None
    for node in graph.nodes:
        if node in users or (not users and last in returned and node not in returned):
            return node
        last = node if node in returned or last not in returned else last
    raise AssertionError("The insert point can't be None")


def _copy_attributes(gm: GraphModule, replacement: nn.Module) -> None:
    """Give `gm` the submodules and attributes that the replacement has brought."""
    for node in gm.graph.nodes:
        if node.op in ("call_module", "get_attr"):
            try:
                _get_attr(gm, node.target)
            except AttributeError:
                _assign_attr(_get_attr(replacement, node.target), gm, node.target)
    gm.delete_all_unused_submodules()


__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]
