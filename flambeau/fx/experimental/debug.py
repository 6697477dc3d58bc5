"""Stopping in the code that is made of a graph."""
from __future__ import annotations

from flambeau.fx.graph_module import GraphModule

__all__ = ["set_trace"]


def set_trace(gm: GraphModule) -> GraphModule:
    """Let `gm` enter Python's debugger as soon as it is called."""
    def stop_first(before: object) -> object:
        def transform(body: list[str]) -> list[str]:
            lines = before(body) if callable(before) else body
            return ["import pdb; pdb.set_trace()\n", *lines]
        return transform

    with gm.graph.on_generate_code(make_transformer=stop_first):
        gm.recompile()
    return gm
