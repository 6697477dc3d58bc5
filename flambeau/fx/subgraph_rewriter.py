"""Replacing parts of a graph that look like a pattern."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from flambeau.fx._symbolic_trace import symbolic_trace
from flambeau.fx.graph import Graph
from flambeau.fx.graph_module import GraphModule
from flambeau.fx.node import Node, map_arg


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


def _graph_of(pattern: Any) -> Graph:
    if isinstance(pattern, Graph):
        return pattern
    return (pattern if isinstance(pattern, GraphModule) else symbolic_trace(pattern)).graph


class _Matcher:
    """Looks for one pattern."""

    def __init__(self, pattern: Graph):
        self.pattern = pattern
        returned: list[Node] = []
        map_arg(pattern.output_node().args[0], returned.append)
        self.returned = list(dict.fromkeys(returned))

    def at(self, nodes: tuple[Node, ...]) -> dict[Node, Node] | None:
        """The match whose returned nodes are these, if it is one."""
        found: dict[Node, Any] = {}
        if not all(self._same(p, n, found) for p, n in zip(self.returned, nodes)):
            return None
        inner = {n for p, n in found.items() if p.op != "placeholder"}
        for pattern, node in found.items():
            if pattern.op != "placeholder" and pattern not in self.returned \
                    and not inner.issuperset(node.users):
                return None         # somebody else uses a value that would go
        return found

    def _same(self, pattern: Any, given: Any, found: dict[Node, Any]) -> bool:
        if not isinstance(pattern, Node):
            if isinstance(given, Node):
                return False
            if isinstance(pattern, (tuple, list)):
                return isinstance(given, (tuple, list)) and len(pattern) == len(given) and all(
                    self._same(p, g, found) for p, g in zip(pattern, given))
            if isinstance(pattern, dict):
                return isinstance(given, dict) and pattern.keys() == given.keys() and all(
                    self._same(p, given[k], found) for k, p in pattern.items())
            return type(pattern) is type(given) and pattern == given
        if pattern in found:
            return found[pattern] is given
        if pattern.op == "placeholder":
            found[pattern] = given
            return True
        if not isinstance(given, Node) or pattern.op != given.op \
                or pattern.target != given.target or given in found.values():
            return False
        found[pattern] = given
        return self._same(pattern.args, given.args, found) \
            and self._same(pattern.kwargs, given.kwargs, found)

    def all(self, graph: Graph) -> list[dict[Node, Node]]:
        """All matches that do not overlap."""
        if len(self.returned) != 1:
            raise NotImplementedError("replace_pattern: patterns that return several values")
        taken: set[Node] = set()
        matches = []
        for node in graph.nodes:
            found = self.at((node,))
            if found is None:
                continue
            inner = {n for p, n in found.items() if p.op != "placeholder"}
            if not inner & taken:
                taken |= inner
                matches.append(found)
        return matches


def replace_pattern(gm: GraphModule, pattern: Any, replacement: Any) -> list[Match]:
    """Replace the parts of `gm` that look like `pattern`, a function or module, by `replacement`,
    one with the same parameters. Gives the matches.

    >>> import flambeau
    >>> gm = symbolic_trace(lambda x: flambeau.relu(x) + 1)
    >>> _ = replace_pattern(gm, lambda v: flambeau.relu(v), lambda v: flambeau.sigmoid(v))
    >>> gm(flambeau.zeros(1))
    tensor([1.5000])
    """
    return [Match(r.anchor, r.nodes_map) for r in _replace(gm, pattern, replacement, [])]


def replace_pattern_with_filters(gm: GraphModule, pattern: Any, replacement: Any = None,
                                 match_filters: list[Callable[..., bool]] | None = None,
                                 ignore_literals: bool = False) -> list[ReplacedPatterns]:
    """`replace_pattern` of those matches that all `match_filters` accept."""
    if ignore_literals:
        raise NotImplementedError("replace_pattern_with_filters: ignore_literals")
    return _replace(gm, pattern, replacement, match_filters or [])


def _replace(gm: GraphModule, pattern: Any, replacement: Any, filters: list[Any]
             ) -> list[ReplacedPatterns]:
    graph, pattern, new = gm.graph, _graph_of(pattern), _graph_of(replacement)
    matcher = _Matcher(pattern)
    anchor, = matcher.returned
    made = []
    replaced: dict[Node, Node] = {}
    for found in matcher.all(graph):
        found = {p: replaced.get(n, n) for p, n in found.items()}
        if not all(accept(found, graph, pattern) for accept in filters):
            continue
        parameters = [n for n in pattern.nodes if n.op == "placeholder"]
        values: dict[Node, Any] = {
            there: found[here] for here, there in zip(
                parameters, [n for n in new.nodes if n.op == "placeholder"], strict=True)}
        old = found[anchor]
        before = {n for n in values.values() if isinstance(n, Node)}
        users = set(old.users)
        place = next((n for n in graph.nodes if n in users), None) or old.next
        known = set(values)
        with graph.inserting_before(place):
            result = graph.graph_copy(new, values)
        old.replace_all_uses_with(result)
        replaced[old] = result
        inner = [n for p, n in found.items() if p.op != "placeholder"]
        order = {n: i for i, n in enumerate(graph.nodes)}
        for node in sorted(inner, key=order.get, reverse=True):
            graph.erase_node(node)
        copies = [v for k, v in values.items() if k not in known and v not in before]
        made.append(ReplacedPatterns(anchor, found, copies))
    gm.recompile()
    _copy_modules(gm, replacement)
    return made


def _copy_modules(gm: GraphModule, replacement: Any) -> None:
    """Give `gm` the submodules and attributes that the replacement has brought."""
    from flambeau import nn
    if isinstance(replacement, nn.Module):
        from flambeau.fx.graph_module import _assign_attr, _get_attr
        for node in gm.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                try:
                    _get_attr(gm, node.target)
                except AttributeError:
                    _assign_attr(_get_attr(replacement, node.target), gm, node.target)
    gm.delete_all_unused_submodules()


__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]
