"""What depends on no input is computed once, and the module gives what it gave."""
import operator

from hypothesis import given, settings
from hypothesis import strategies as st

import flambeau
from flambeau import fx, nn
from flambeau.fx.experimental.const_fold import (
    get_unique_attr_name_in_module,
    split_const_subgraphs,
)

OPERATORS = [operator.add, operator.sub, operator.mul]
steps = st.lists(st.tuples(st.sampled_from(OPERATORS), st.integers(0, 9), st.integers(0, 9)),
                 min_size=1, max_size=6)


class Program(nn.Module):
    """Sums and products of two inputs and two parameters, and of what came out of them."""

    def __init__(self, steps):
        super().__init__()
        self.steps = steps
        self.a, self.b = nn.Parameter(flambeau.randn(3)), nn.Parameter(flambeau.randn(3))

    def forward(self, x, y):
        values = [x, y, self.a, self.b]
        for function, first, second in self.steps:
            values.append(function(values[first % len(values)], values[second % len(values)]))
        return values[-1], values[len(values) // 2]


@given(steps)
@settings(max_examples=60, deadline=None)
def test_folding_changes_no_value(steps):
    module = Program(steps)
    folded = split_const_subgraphs(module)
    x, y = flambeau.randn(3), flambeau.randn(3)
    for got, expected in zip(folded(x, y), module(x, y)):
        assert flambeau.equal(got, expected)
    folded.graph.lint()
    for node in folded.graph.nodes:
        if node.users and node.op == "call_function" and node.target in OPERATORS:
            assert any(source.op != "get_attr" and source.target is not operator.getitem
                       for source in node.all_input_nodes)


def test_what_shall_not_be_folded_stays():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(flambeau.ones(2))

        def forward(self, x):
            return x * self.scale.exp()
    assert split_const_subgraphs(
        Scaled(), lambda node: node.target == "exp").const_subgraph_module is None
    folded = split_const_subgraphs(fx.symbolic_trace(Scaled()))
    assert [n.op for n in folded.graph.nodes] == ["placeholder", "get_attr", "call_function",
                                                  "output"]
    assert not folded.has_folding_been_run
    folded(flambeau.ones(2))
    assert folded.has_folding_been_run


def test_names_that_are_taken_get_numbers():
    module = nn.Module()
    module.name_1 = module.name = nn.Identity()
    assert get_unique_attr_name_in_module(module, "name") == "name_2"
    assert get_unique_attr_name_in_module(module, "2.x") == "_2_x"
