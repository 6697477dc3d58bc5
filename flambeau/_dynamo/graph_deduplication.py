"""Orders of the nodes of a graph."""
from __future__ import annotations

from typing import Any

from flambeau.fx import Graph, Node


def _stable_topological_sort(graph: Graph, node_to_additional_deps: dict[Node, Any] | None = None
                             ) -> bool:
    """Move nodes behind those that they use, and behind the additional ones given; has that
    changed the order?"""
    extra = node_to_additional_deps or {}
    pending = list(reversed(list(graph.nodes)))
    ready: set[Node] = set()
    waiting: dict[Node, list[Node]] = {}
    outputs: list[Node] = []
    cursor: Any = None
    before = list(graph.nodes)

    def place(node: Node) -> None:
        nonlocal cursor
        ready.add(node)
        if cursor is not None and cursor.next is not node:
            cursor.append(node)
        cursor = node
        pending.extend(reversed(waiting.pop(node, ())))
    while pending:
        node = pending.pop()
        if node.op == "output":
            outputs.append(node)
            continue
        needs = [n for n in (*node.all_input_nodes, *extra.get(node, ())) if n not in ready]
        if needs:
            waiting.setdefault(needs[-1], []).append(node)
        else:
            place(node)
    ready.update(outputs)
    if waiting or len(ready) != len(graph.nodes):
        raise AssertionError("the graph has a cycle")
    return before != list(graph.nodes)


__all__ = ["_stable_topological_sort"]
