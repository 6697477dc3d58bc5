"""Other targets for nodes, and the bytes that they take."""
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.fx import symbolic_trace
from flambeau.fx.passes import graph_manipulation


def test_sizes_of_nodes():
    graph = symbolic_trace(nn.Sequential(nn.Linear(2, 3), nn.ReLU()))
    graph_manipulation.get_size_of_all_nodes(graph, [torch.ones(4, 2)])
    assert [tuple(node.size_bytes) for node in graph.graph.nodes if node.op != "output"] == [
        (32, 32), (48, 84), (48, 48)]
    with pytest.raises(RuntimeError, match="has no tensor metadata"):
        graph_manipulation.get_tensor_meta(next(iter(symbolic_trace(nn.ReLU()).graph.nodes)))


def test_targets_are_replaced():
    graph = symbolic_trace(lambda x: torch.relu(x) + torch.relu(-x))
    graph_manipulation.replace_target_nodes_with(
        graph, "call_function", torch.relu, "call_function", torch.sigmoid)
    graph.recompile()
    x = torch.rand(3)
    assert torch.equal(graph(x), torch.sigmoid(x) + torch.sigmoid(-x))
    assert "relu = torch.sigmoid(x)" in graph.code
