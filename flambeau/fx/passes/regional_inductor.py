"""Compiling the annotated parts of a graph: there is no compiler."""
from __future__ import annotations

from typing import Any

from flambeau.fx import GraphModule


def regional_inductor(gm: GraphModule, *example_args: Any) -> GraphModule:
    """The graph with the nodes that say `compile_with_inductor` compiled; without such nodes, it is
    given back as it is."""
    wanted = [node for node in gm.graph.nodes
              if "compile_with_inductor" in node.meta.get("custom", {})]
    if wanted:
        raise NotImplementedError("regional_inductor: TorchInductor, the compiler, is not there; "
                                  f"{len(wanted)} nodes ask for it")
    return gm


__all__ = ["regional_inductor"]
