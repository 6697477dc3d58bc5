"""Nodes as a module of their own."""
import pytest

import flambeau as torch
from flambeau.fx import symbolic_trace
from flambeau.fx.passes.utils import fuser_utils


def program(a, b, c):
    y = (a + b) * c
    z = torch.relu(y)
    return torch.sin((z + a) * b) + z, y


@pytest.fixture
def traced():
    graph = symbolic_trace(program)
    return graph, {node.name: node for node in graph.graph.nodes}


def test_what_uses_a_node_from_outside_must_not_be_used(traced):
    _, nodes = traced
    assert fuser_utils.validate_partition([nodes["add"], nodes["mul"]])
    assert not fuser_utils.validate_partition([nodes["mul"], nodes["add_1"]])


def test_nodes_in_the_order_in_which_they_run(traced):
    _, nodes = traced
    assert fuser_utils.topo_sort([nodes["mul"], nodes["add"]]) == [nodes["add"], nodes["mul"]]


@pytest.mark.parametrize("always", [False, True])
def test_nodes_become_a_module(traced, always):
    graph, nodes = traced
    fused = fuser_utils.fuse_by_partitions(
        graph, [{nodes["add"]: None, nodes["mul"]: None}], "p_", always_return_tuple=always)
    inputs = [torch.rand(2) for _ in range(3)]
    assert torch.equal(fused(*inputs)[0], program(*inputs)[0])
    assert type(fused.p_0(*inputs)) is (tuple if always else torch.Tensor)


def test_nodes_that_cannot_be_one(traced):
    graph, nodes = traced
    with pytest.raises(AssertionError, match="found dependency cycles"):
        fuser_utils.fuse_by_partitions(graph, [{nodes["mul"]: None, nodes["add_1"]: None}])
    with pytest.raises(AssertionError, match="doesn't belong to passed in graph module program"):
        fuser_utils.fuse_by_partitions(symbolic_trace(program), [{nodes["add"]: None}])
