"""Orders of the nodes of a graph."""
import pytest

from flambeau import fx
from flambeau._dynamo.graph_deduplication import _stable_topological_sort


def test_nodes_come_behind_what_they_use():
    graph = fx.symbolic_trace(lambda x: (x.sin() + x.cos()).tan()).graph
    x, sin, cos, add, tan, output = graph.nodes
    assert not _stable_topological_sort(graph, {}) or list(graph.nodes) == [
        x, sin, cos, add, tan, output]
    x.prepend(add)
    _stable_topological_sort(graph, {})
    graph.lint()
    assert [n.name for n in graph.nodes] == ["x", "sin", "cos", "add", "tan", "output"]


def test_additional_order():
    graph = fx.symbolic_trace(lambda x: (x.sin(), x.cos())).graph
    _, sin, cos, _ = graph.nodes
    _stable_topological_sort(graph, {sin: {cos}})
    assert [n.name for n in graph.nodes] == ["x", "cos", "sin", "output"]
    with pytest.raises(AssertionError):
        _stable_topological_sort(graph, {sin: {cos}, cos: {sin}})
