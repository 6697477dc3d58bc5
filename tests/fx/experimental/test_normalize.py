"""Calls that are written in one way do what they did."""
import operator

import flambeau as torch
from flambeau import nn
from flambeau.fx import symbolic_trace
from flambeau.fx.experimental.normalize import NormalizeArgs, NormalizeOperators


def test_arguments_by_name():
    traced = symbolic_trace(nn.Sequential(nn.Linear(2, 3), nn.ReLU()))
    named = NormalizeArgs(traced).transform()
    assert all(not n.args and n.kwargs for n in named.graph.nodes if n.op == "call_module")
    x = torch.randn(4, 2)
    torch.testing.assert_close(named(x), traced(x))


def test_operators_of_python():
    traced = symbolic_trace(lambda x, y: torch.sub(torch.add(x, y), torch.mul(x, 2), alpha=3))
    found = NormalizeOperators(traced).transform()
    assert [n.target for n in found.graph.find_nodes(op="call_function", target=operator.add)]
    assert found.graph.find_nodes(op="call_function", target=torch.sub)     # it has `alpha`
    x, y = torch.ones(2), torch.ones(2) * 3
    torch.testing.assert_close(found(x, y), traced(x, y))
