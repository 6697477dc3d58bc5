"""Proxies: what is written down of a program."""
from __future__ import annotations

import pytest

import flambeau
import flambeau as torch
from flambeau import fx


def test_proxies_by_hand():
    graph = fx.Graph()
    x = fx.Proxy(graph.placeholder("x"))
    graph.output((torch.cat([x, x.relu()]) * 2 + flambeau.nn.functional.softmax(x, 0)).node)
    graph.lint()
    assert [n.op for n in graph.nodes][1:4] == ["call_method", "call_function", "call_function"]
    assert repr(x) == "Proxy(x)"


def test_functions_in_python_are_shown_with_their_defaults():
    functional = torch.nn.functional

    def program(x):
        a = functional.dropout(x, 0.3)
        b = functional.layer_norm(a, (3,))
        return functional.softmax(b, -1)
    shown = [(n.target, n.args[1:], dict(n.kwargs)) for n in torch.fx.symbolic_trace(program)
             .graph.nodes if n.op == "call_function"]
    assert shown == [
        (functional.dropout, (), {"p": 0.3, "training": True, "inplace": False}),
        (functional.layer_norm, ((3,),), {"weight": None, "bias": None, "eps": 1e-05}),
        (functional.softmax, (), {"dim": -1, "_stacklevel": 3, "dtype": None})]


def test_pooling_with_and_without_indices_are_two_functions():
    functional = torch.nn.functional
    graph = torch.fx.symbolic_trace(lambda x: (
        functional.max_pool2d(x, 2), functional.max_pool2d(x, 2, return_indices=True))).graph
    found = [n for n in graph.nodes if n.op == "call_function"]
    assert [n.target for n in found] == [functional.max_pool2d, functional.max_pool2d_with_indices]
    assert found[0].kwargs == {"stride": None, "padding": 0, "dilation": 1, "ceil_mode": False,
                               "return_indices": False}
    with pytest.raises(torch.fx.proxy.TraceError, match="Proxy object cannot be iterated"):
        torch.fx.symbolic_trace(functional.max_pool2d)
