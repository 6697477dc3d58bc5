"""What is said about nodes while they are made."""
from __future__ import annotations

import flambeau as torch
from flambeau.fx import traceback
from flambeau.fx.experimental.proxy_tensor import make_fx

X = torch.arange(12.0).view(3, 4)


def test_annotations():
    @traceback.annotate_fn({"stage": 2})
    def g(x):
        return x.cos()

    def f(x):
        with traceback.annotate({"stage": 1}):
            x = x.sin()
        return g(x)
    with traceback.preserve_node_meta():
        graph = make_fx(f)(X)
    assert [n.meta.get("custom") for n in graph.graph.nodes if n.op == "call_function"] == [
        {"stage": 1}, {"stage": 2}]
    assert not traceback.has_preserved_node_meta()
