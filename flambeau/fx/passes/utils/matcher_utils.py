"""`SubgraphMatcher`: finds the places of a graph that look like a pattern."""
from __future__ import annotations

import copy
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from flambeau.fx.graph import Graph
from flambeau.fx.node import Node


@dataclass
class InternalMatch:
    """A place that looks like the pattern: which node of it stands for which."""
    anchors: list[Node]
    nodes_map: dict[Node, Node] = field(default_factory=dict)
    placeholder_nodes: list[Any] = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)

    def __copy__(self) -> InternalMatch:
        return InternalMatch(self.anchors, self.nodes_map.copy(), self.placeholder_nodes.copy(),
                             self.returning_nodes.copy(), self.name_node_map.copy())


class SubgraphMatcher:
    """Finds a pattern, a graph, in others.

    match_output             the pattern's output has to be the graph's
    match_placeholder        the pattern's placeholders have to be placeholders
    remove_overlapping_matches  keep only matches that share no node
    ignore_literals          numbers and strings in the pattern stand for any

    >>> import flambeau
    >>> from flambeau import fx
    >>> pattern = fx.symbolic_trace(lambda a: flambeau.relu(a)).graph
    >>> graph = fx.symbolic_trace(lambda x: flambeau.relu(flambeau.relu(x) + 1)).graph
    >>> len(SubgraphMatcher(pattern).match(graph))
    2
    """

    def __init__(self, pattern: Graph, match_output: bool = False, match_placeholder: bool = False,
                 remove_overlapping_matches: bool = True, ignore_literals: bool = False):
        self.pattern = pattern
        self.match_output, self.match_placeholder = match_output, match_placeholder
        self.remove_overlapping_matches = remove_overlapping_matches
        self.ignore_literals = ignore_literals
        if not len(pattern.nodes):
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        for node in pattern.nodes:
            if node.op != "output" and not node.is_impure() and not node.users:
                raise AssertionError("SubgraphMatcher cannot be initialized with an pattern with "
                                     "dead code")
        self.pattern_placeholder_nodes = pattern.find_nodes(op="placeholder")
        output = pattern.output_node()
        self.pattern_returning_nodes = output.all_input_nodes
        self.pattern_anchors = [output] if match_output else [
            n for n in output.all_input_nodes if len(n.users) == 1]

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """The places of a graph that look like the pattern."""
        candidates: dict[Node, list[Node]] = defaultdict(list)
        for anchor in self.pattern_anchors:
            for node in graph.nodes:
                if self._nodes_are_equal(anchor, node, node_name_match):
                    candidates[anchor].append(node)
        lists = list(candidates.items())
        matches: list[InternalMatch] = []

        def backtrack(i: int, match: InternalMatch) -> None:
            if i == len(lists):
                match.placeholder_nodes = [match.nodes_map[p]
                                           for p in self.pattern_placeholder_nodes
                                           if p in match.nodes_map]
                match.returning_nodes = [match.nodes_map[p] for p in self.pattern_returning_nodes]
                matches.append(match)
                return
            anchor, nodes = lists[i]
            for node in nodes:
                extended = copy.copy(match)
                if self._match_nodes(anchor, node, extended, node_name_match):
                    backtrack(i + 1, extended)
        if lists:
            backtrack(0, InternalMatch(anchors=self.pattern_anchors))
        matches = [m for m in matches if self._is_contained(m.nodes_map)]
        return self._remove_overlapping_matches(matches) if self.remove_overlapping_matches \
            else matches

    def _nodes_are_equal(self, pn: Node, gn: Node, node_name_match: str = "") -> bool:
        if node_name_match and node_name_match in gn.name:
            return True
        if not self.match_placeholder and pn.op == "placeholder":
            return True
        if pn.op != gn.op:
            return False
        return pn.op in ("placeholder", "output", "get_attr") or pn.target == gn.target

    def _is_contained(self, nodes_map: dict[Node, Node]) -> bool:
        """Does nobody outside use a value inside, but for those returned?"""
        inside = {gn: pn for pn, gn in nodes_map.items() if pn.op != "placeholder"}
        return all(pn in self.pattern_returning_nodes or all(user in inside for user in gn.users)
                   for gn, pn in inside.items() if isinstance(gn, Node))

    @staticmethod
    def _remove_overlapping_matches(matches: list[InternalMatch]) -> list[InternalMatch]:
        found: list[InternalMatch] = []
        taken: set[Node] = set()
        for match in matches:
            nodes = {gn for pn, gn in match.nodes_map.items()
                     if pn.op not in ("placeholder", "output")}
            if not nodes & taken:
                taken |= nodes
                found.append(match)
        return found

    def _match_literals(self, pn: Any, gn: Any, match: InternalMatch) -> bool:
        if isinstance(pn, Node) == isinstance(gn, Node):
            if isinstance(pn, Node):
                raise AssertionError("pn and gn cannot both be Node")
            return self.ignore_literals or (type(pn) is type(gn) and pn == gn)
        return False

    def _match_nodes(self, pn: Node, gn: Any, match: InternalMatch, node_name_match: str = ""
                     ) -> bool:
        if pn in match.nodes_map:
            return match.nodes_map[pn] is gn
        if gn in match.nodes_map.values():
            return False
        if not self._nodes_are_equal(pn, gn, node_name_match):
            return False
        saved = copy.copy(match)
        match.nodes_map[pn] = gn
        if pn.op == "placeholder":
            return True
        if self._match_args(self._flat(pn), self._flat(gn), match):
            return True
        match.nodes_map, match.placeholder_nodes = saved.nodes_map, saved.placeholder_nodes
        return False

    @staticmethod
    def _flat(node: Node) -> list[Any]:
        from flambeau.utils import _pytree
        named: list[Any] = [node.kwargs[k] for k in sorted(node.kwargs)]
        return _pytree.tree_leaves([list(node.args), named])

    def _match_args(self, args1: list[Any], args2: list[Any], match: InternalMatch) -> bool:
        if len(args1) != len(args2):
            return False
        for a, b in zip(args1, args2):
            if isinstance(a, Node):
                if isinstance(b, Node):
                    if not self._match_nodes(a, b, match):
                        return False
                elif a.op == "placeholder" and not self.match_placeholder:
                    match.nodes_map[a] = b
                else:
                    return False
            elif not self._match_literals(a, b, match):
                return False
        return True


__all__ = ["InternalMatch", "SubgraphMatcher"]
