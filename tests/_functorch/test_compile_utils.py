"""Small passes over graphs of ops."""
import flambeau as torch
from flambeau._functorch import compile_utils as utils
from flambeau.fx.experimental.proxy_tensor import make_fx


def names(graph):
    return [node.name for node in graph.nodes if node.op == "call_function"]


def test_parts_come_right_behind_what_they_are_of():
    graph = make_fx(lambda x: (lambda y: (x.sin(), y[1] + 1, y[0]))(x.sort()))(torch.ones(3))
    value = torch.tensor([2.0, 1.0, 3.0])
    before = graph(value)
    raised = utils.raise_getitems(graph)
    found = names(raised.graph)
    at = found.index("sort")
    assert set(found[at + 1:at + 3]) == {"getitem", "getitem_1"}
    for a, b in zip(raised(value), before):
        assert torch.equal(a, b)


def test_what_is_computed_twice_is_computed_once():
    graph = make_fx(lambda x: x.sin() + x.sin() * x.cos())(torch.ones(2))
    assert names(graph.graph).count("sin_1") == 1
    once = utils.fx_graph_cse(graph.graph)
    assert len(names(once)) == len(names(graph.graph)) - 1


def test_packets_in_place_of_overloads():
    graph = make_fx(lambda x: x.sin())(torch.ones(2))
    utils.strip_overloads(graph)
    (node,) = [n for n in graph.graph.nodes if n.op == "call_function"]
    assert node.target is torch.ops.aten.sin
    assert torch.equal(graph(torch.ones(2)), torch.ones(2).sin())


def test_inputs_and_outputs():
    graph = make_fx(lambda x, y: {"a": x + y, "b": [x]})(torch.ones(2), torch.ones(2)).graph
    assert [n.op for n in utils.get_placeholders(graph)] == ["placeholder"] * 2
    assert len(utils.get_outputs(graph)) == 2
