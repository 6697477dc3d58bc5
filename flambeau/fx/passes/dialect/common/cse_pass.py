"""`CSEPass`: what is computed twice is computed once."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau.dispatch.aten.schemas import recorded
from flambeau.fx import Graph, GraphModule, Node
from flambeau.fx.node import map_arg
from flambeau.fx.passes.infra.pass_base import PassBase, PassResult
from flambeau.utils import _pytree


def get_CSE_banned_ops() -> set[Any]:
    """The ops that have to be called each time: those that draw random numbers, and those that
    write to an argument.

    >>> import flambeau
    >>> flambeau.ops.aten.bernoulli in get_CSE_banned_ops()
    True
    """
    return {getattr(flambeau.ops.aten, name) for name, overloads in recorded().items()
            if any("nondeterministic_seeded" in overload.facts or (
                "!" in overload.line and not key.endswith("out"))
                for key, overload in overloads.items())}


class CSEPass(PassBase):
    """Replaces a node by an earlier one with the same target and arguments.

    >>> import flambeau
    >>> from flambeau.fx.experimental.proxy_tensor import make_fx
    >>> gm = make_fx(lambda x: x.sin() + x.sin())(flambeau.ones(1))
    >>> found = CSEPass()(gm)
    >>> found.modified, len(found.graph_module.graph.nodes)
    (True, 4)
    """

    def __init__(self, banned_ops: Any = None):
        self.banned_ops = set(banned_ops or ())
        super().__init__()

    def call(self, graph_module: GraphModule) -> PassResult:
        """Make the graph anew."""
        new = Graph()
        values: dict[Node, Node] = {}
        known: dict[Any, Node] = {}
        modified = False
        old = graph_module.graph
        new._codegen = old._codegen
        writes = any(getattr(getattr(n.target, "_schema", None), "is_mutable", False)
                     for n in old.nodes)
        for node in old.nodes:
            key = None
            if node.op == "call_function" and not writes and not node.is_impure() \
                    and not self.banned_ops.intersection(
                        (node.target, getattr(node.target, "overloadpacket", None))):
                args = map_arg((node.args, node.kwargs), lambda n: values[n])
                leaves, spec = _pytree.tree_flatten(args)
                key = node.target, tuple((type(v), v if isinstance(v, Node) else repr(v))
                                         for v in leaves), str(spec)
                if key in known:
                    values[node] = known[key]
                    modified = True
                    continue
            values[node] = new.node_copy(node, lambda n: values[n])
            if key is not None:
                known[key] = values[node]
        made = GraphModule(graph_module, new)
        made.meta = graph_module.meta
        return PassResult(made, modified)


__all__ = ["CSEPass", "get_CSE_banned_ops"]
