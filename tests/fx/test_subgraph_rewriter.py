"""Parts of graphs that look like a pattern are replaced."""
from __future__ import annotations

import pytest

import flambeau
import flambeau as torch
from flambeau import fx, nn
from flambeau.fx.subgraph_rewriter import replace_pattern_with_filters


def test_replace_pattern():
    class Program(nn.Module):
        def forward(self, x, w1, w2):
            m1 = torch.cat([w1, w2]).sum()
            m2 = torch.cat([w1, w2]).sum()
            return x + torch.max(m1) + torch.max(m2)
    module = fx.symbolic_trace(Program())
    matches = fx.replace_pattern(module, lambda w1, w2: torch.cat([w1, w2]).sum(),
                                 lambda w1, w2: torch.stack([w1, w2]))
    assert len(matches) == 2 and matches[0].anchor.name == "sum_1"
    assert module.code.strip() == """
def forward(self, x, w1, w2):
    stack = torch.stack([w1, w2])
    max_1 = torch.max(stack);  stack = None
    add = x + max_1;  x = max_1 = None
    stack_1 = torch.stack([w1, w2]);  w1 = w2 = None
    max_2 = torch.max(stack_1);  stack_1 = None
    add_1 = add + max_2;  add = max_2 = None
    return add_1
    """.strip()


def test_values_that_others_need_are_not_replaced():
    def program(x):
        y = torch.relu(x)
        return torch.neg(y) + y
    module = fx.symbolic_trace(program)
    assert fx.replace_pattern(module, lambda v: torch.neg(torch.relu(v)), lambda v: v) == []


def test_chained_matches():
    module = fx.symbolic_trace(lambda x: torch.relu(torch.relu(x)))
    assert len(fx.replace_pattern(module, lambda v: torch.relu(v), lambda v: torch.neg(v))) == 2
    assert module(flambeau.tensor([-2.0])).item() == -2.0


def test_several_values_are_replaced_at_once():
    module = fx.symbolic_trace(lambda x: x.sin() + x.cos())
    match, = fx.replace_pattern(module, lambda x: (x.sin(), x.cos()), lambda x: (x.tan(), x.exp()))
    assert {str(k): str(v) for k, v in match.nodes_map.items()} == {
        "sin": "sin", "x": "x", "cos": "cos"}
    x = torch.tensor([0.5])
    torch.testing.assert_close(module(x), x.tan() + x.exp())


def test_literals_and_filters():
    def program(x):
        return (x + 1) + 2

    def made(**options):
        module = fx.symbolic_trace(program)
        found = replace_pattern_with_filters(module, lambda x: x + 3, lambda x: x * 5, **options)
        return len(found), module(1.0)
    assert made() == (0, 4.0)
    assert made(ignore_literals=True) == (2, 25.0)
    seen = []

    def first(match, graph, pattern):
        seen.append((match.returning_nodes[0].name, len(graph.nodes), len(pattern.nodes)))
        return match.returning_nodes[0].name == "add"
    assert made(ignore_literals=True, match_filters=[first]) == (1, 7.0)
    assert seen == [("add", 4, 3), ("add_1", 4, 3)]


def test_replacements_made_for_each_match():
    module = fx.symbolic_trace(lambda x: (x + 1) + 2)

    def make(match, graph, pattern):
        number = match.returning_nodes[0].args[1]
        return fx.symbolic_trace(lambda x: x * (10 * number)).graph
    found = replace_pattern_with_filters(module, lambda x: x + 3, ignore_literals=True,
                                         replacement_callback=make)
    assert [[n.name for n in r.replacements] for r in found] == [["mul"], ["mul_1"]]
    assert module(1.0) == 200.0


def test_modules_of_the_replacement_come_along():
    class Scaled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.act, self.scale = torch.nn.ReLU(), torch.nn.Parameter(torch.full((2,), 3.0))

        def forward(self, x):
            return self.act(x) * self.scale
    module = fx.symbolic_trace(torch.nn.Sequential(torch.nn.Sigmoid()))
    pattern = fx.symbolic_trace(torch.nn.Sequential(torch.nn.Sigmoid()))
    assert len(fx.replace_pattern(module, pattern, Scaled())) == 1
    assert [name for name, _ in module.named_parameters()] == ["scale"]
    assert [name for name, _ in module.named_children()] == ["act"]
    assert module(torch.tensor([-1.0, 2.0])).tolist() == [0, 6]


@pytest.mark.parametrize(("pattern", "replacement", "message"), [
    (lambda a, b: a - b, lambda b: b, "Placeholder count mismatch: 2 vs 1"),
    (lambda a, b: a - b, None, "Must provide either a replacement GraphModule or a replacement "
                               "callback"),
])
def test_what_is_refused(pattern, replacement, message):
    module = fx.symbolic_trace(lambda x, y: x - y)
    with pytest.raises(AssertionError, match=message):
        replace_pattern_with_filters(module, pattern, replacement)


@pytest.mark.parametrize(("program", "pattern", "replacement", "result"), [
    (lambda x: x.sin().sin() + 1, lambda a: a.sin(), lambda a: a, 3.0),
    (lambda x: x - 1, lambda a, b: a - b, lambda b, a: a - b, -1.0),     # by place, not by name
    (lambda x: torch.add(x, 3, alpha=2) + torch.add(x, 4, alpha=3),
     lambda a, b: torch.add(a, b, alpha=2), lambda a, b: a * b, 20.0),
    (lambda x: torch.stack((x, x.neg())).sum(), lambda a, b: torch.stack([a, b]),
     lambda a, b: a - b, 4.0),
])
def test_replacements(program, pattern, replacement, result):
    module = fx.symbolic_trace(program)
    assert len(fx.replace_pattern(module, pattern, replacement)) >= 1
    module.graph.lint()
    assert module(torch.tensor(2.0)).item() == result


def test_one_value_does_not_stand_for_two_parameters():
    module = fx.symbolic_trace(lambda x: x + x)
    assert fx.replace_pattern(module, lambda a, b: a + b, lambda a, b: a * b) == []
