"""Assertions and annotations that a tracer sees."""
import pytest

import flambeau
from flambeau import fx, nn
from flambeau.fx.experimental.rewriter import RewritingTracer


class Checked(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(flambeau.ones(2))

    def forward(self, x: flambeau.Tensor, n: int):
        assert n == 1, "not one"
        result: flambeau.Tensor = x + self.bias
        return result


def traced(root):
    tracer = RewritingTracer()
    graph = tracer.trace(root)
    graph.lint()
    return fx.GraphModule(tracer.root, graph)


def test_assertions_of_a_module_are_recorded():
    module = traced(Checked())
    assert any(n.target is flambeau._assert for n in module.graph.nodes)
    assert [n.type for n in module.graph.nodes if n.op == "call_function"][-1] is flambeau.Tensor
    assert module(flambeau.ones(2), 1).tolist() == [2, 2]
    with pytest.raises(AssertionError, match="not one"):
        module(flambeau.ones(2), 2)


def test_functions_keep_what_they_close_over_and_their_defaults():
    factor = 3

    def scaled(x, power=2):
        assert x.shape
        return x ** power * factor
    assert traced(scaled)(flambeau.full((1,), 2.0), 2).tolist() == [12]


def test_builtin_functions_have_no_code():
    with pytest.raises(AssertionError):
        fx.symbolic_trace(flambeau.nn.functional.conv1d)
