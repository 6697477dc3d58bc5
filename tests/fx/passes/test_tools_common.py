"""The order of nodes, and names of their targets."""
from __future__ import annotations

from fx_cases import Model

import flambeau as torch
from flambeau import fx
from flambeau.fx.experimental.proxy_tensor import make_fx
from flambeau.fx.passes.dialect.common.cse_pass import CSEPass
from flambeau.fx.passes.tools_common import legalize_graph, stable_topological_sort

X = torch.arange(6.0).view(2, 3)


def test_order_and_repetition():
    gm = fx.symbolic_trace(Model())
    before = [n.name for n in gm.graph.nodes]
    assert sorted(n.name for n in legalize_graph(gm).graph.nodes) == sorted(before)
    assert [n.name for n in stable_topological_sort(fx.symbolic_trace(Model())).graph.nodes] == \
        before
    graph = make_fx(lambda x: x.sin() * x.sin() + torch.rand(3) - torch.rand(3))(X)
    found = CSEPass()(graph)
    count = [len(found.graph_module.graph.find_nodes(op="call_function", target=t)) for t in (
        torch.ops.aten.sin.default, torch.ops.aten.rand.default)]
    assert found.modified and count == [1, 2]
