"""Text about graphs, for logs."""
from __future__ import annotations

from typing import Any


def _format_graph_code(name: str, filename: str, graph_str: str) -> str:
    return f"TRACED GRAPH\n {name} {filename} {graph_str}\n"


class _Later:
    """Text that is made when it is printed."""

    def __init__(self, make: Any):
        self.make = make

    def __str__(self) -> str:
        return self.make()


def lazy_format_graph_code(name: str, gm: Any, maybe_id: int | None = None, **kwargs: Any) -> Any:
    """The code of a graph module under a heading, made when it is printed."""
    def text() -> str:
        title = name if maybe_id is None else f"{name} {maybe_id}"
        return _format_graph_code(f"===== {title} =====\n", gm.forward.__code__.co_filename,
                                  gm.print_readable(print_output=False, **kwargs))
    return _Later(text)


def first_call_function_nn_module_stack(graph: Any) -> dict[str, Any] | None:
    """The modules that the first call which says so was made in."""
    return next((node.meta["nn_module_stack"] for node in graph.nodes
                 if node.op == "call_function" and "nn_module_stack" in node.meta), None)


def get_node_context(node: Any, num_nodes: int = 2) -> str:
    """A node and those before it, as text."""
    lines = []
    for _ in range(num_nodes):
        if node.op == "root":
            break
        lines.append(node.format_node())
        node = node.prev
    return "\n".join(reversed(lines))
