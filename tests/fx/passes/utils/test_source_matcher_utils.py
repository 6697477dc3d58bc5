"""Nodes of a graph by what they come from."""
import flambeau
from flambeau import nn
from flambeau.fx.passes.utils.source_matcher_utils import (
    check_subgraphs_connected,
    get_source_partitions,
)

X = flambeau.ones(1, 2)


def test_modules_are_found_by_class_and_calls_by_name():
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2))
    graph = flambeau.export.export(model, (X,)).module().graph
    found = get_source_partitions(graph, [nn.Linear, nn.ReLU])
    (first, second), (relu,) = found[nn.Linear], found[nn.ReLU]
    assert [first.input_nodes[0].op, second.input_nodes] == ["placeholder", relu.output_nodes]
    assert check_subgraphs_connected(first, relu) and check_subgraphs_connected(relu, second)
    assert not check_subgraphs_connected(first, second)
    assert get_source_partitions(graph, [nn.ReLU], lambda node: False) == {nn.ReLU: []}
    relu.nodes[0].meta["torch_fn"] = ("relu_1", "function.relu")
    second.nodes[0].meta["source_fn_stack"] = [("outer", nn.Module), ("l", nn.Identity)]
    named = get_source_partitions(graph, ["relu", nn.Identity])
    assert named["relu"][0].nodes == relu.nodes and named[nn.Identity][0].nodes == second.nodes
