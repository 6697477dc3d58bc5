"""The graph of a call, with the module's own parameters."""
import flambeau as torch
from flambeau import nn
from flambeau._dynamo.functional_export import dynamo_graph_capture_for_export


def test_a_module_and_its_graph():
    module = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    graph = dynamo_graph_capture_for_export(module)(torch.ones(1, 3))
    x = torch.randn(4, 3)[:1]
    torch.testing.assert_close(graph(x), module(x))
    assert isinstance(graph, torch.fx.GraphModule)
    assert any(node.op == "output" for node in graph.graph.nodes)


def test_a_function_and_its_keywords():
    graph = dynamo_graph_capture_for_export(lambda x, *, scale: x * scale)(
        torch.ones(2), scale=torch.tensor(3.0))
    assert graph(torch.ones(2), scale=torch.tensor(2.0)).tolist() == [2.0, 2.0]
