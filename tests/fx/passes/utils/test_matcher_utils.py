"""Places of a graph that look like a pattern."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import fx
from flambeau.fx.passes.utils.matcher_utils import SubgraphMatcher


def test_matcher():
    pattern = fx.symbolic_trace(lambda a, b: torch.relu(a + b)).graph
    graph = fx.symbolic_trace(lambda x, y: torch.relu(torch.relu(x + y) + y).sum()).graph
    matches = SubgraphMatcher(pattern).match(graph)
    assert [str(m.returning_nodes[0]) for m in matches] == ["relu", "relu_1"]
    with pytest.raises(ValueError, match="empty pattern"):
        SubgraphMatcher(fx.Graph())
    literal = fx.symbolic_trace(lambda a: a + 1).graph
    other = fx.symbolic_trace(lambda x: x + 2).graph
    assert not SubgraphMatcher(literal).match(other)
    assert SubgraphMatcher(literal, ignore_literals=True).match(other)
