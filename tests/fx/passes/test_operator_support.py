"""Which nodes are supported."""
from __future__ import annotations

from fx_cases import Model

from flambeau import fx
from flambeau.fx.passes.operator_support import OperatorSupport, any_chain, chain, create_op_support
from flambeau.fx.passes.tools_common import get_node_target


def test_support():
    gm = fx.symbolic_trace(Model())
    modules = dict(gm.named_modules())
    nodes = {n.name: n for n in gm.graph.nodes}
    assert get_node_target(modules, nodes["a"]).endswith("linear.Linear")
    table = OperatorSupport({get_node_target(modules, nodes["a"]): None})
    assert table.is_node_supported(modules, nodes["a"])
    assert not table.is_node_supported(modules, nodes["relu"])
    yes = create_op_support(lambda modules, node: True)
    assert any_chain(table, yes).is_node_supported(modules, nodes["relu"])
    assert not chain(table, yes).is_node_supported(modules, nodes["relu"])
