"""Programs as graphs: tracing, changing, and running them again.

>>> import flambeau
>>> gm = symbolic_trace(lambda x: flambeau.add(x, 1))
>>> for node in gm.graph.nodes:
...     if node.target is flambeau.add:
...         node.target = flambeau.mul
>>> _ = gm.recompile()
>>> gm(flambeau.tensor([5.]))
tensor([5.])
"""
from __future__ import annotations

from flambeau._support.lazy.modules import lazy_package
from flambeau.fx import _symbolic_trace, immutable_collections, subgraph_rewriter
from flambeau.fx._symbolic_trace import (
    PH,
    PHBase,
    PHWithMeta,
    ProxyableClassMeta,
    Tracer,
    symbolic_trace,
    wrap,
)
from flambeau.fx.graph import CodeGen, Graph
from flambeau.fx.graph_module import GraphModule
from flambeau.fx.interpreter import Interpreter, Transformer
from flambeau.fx.node import Node, has_side_effect, map_arg
from flambeau.fx.proxy import Proxy
from flambeau.fx.subgraph_rewriter import replace_pattern

__all__ = ["Graph", "GraphModule", "Interpreter", "Node", "Proxy", "Tracer", "Transformer",
           "has_side_effect", "map_arg", "replace_pattern", "symbolic_trace", "wrap"]
__getattr__ = lazy_package(__name__)
