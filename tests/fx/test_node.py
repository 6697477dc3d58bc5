"""What a node of a graph is."""
import copy

import pytest

import flambeau as torch
import flambeau.nn.functional as F
from flambeau import fx


@pytest.mark.parametrize("function", [
    torch.bernoulli, torch.multinomial, torch.normal, torch.poisson, torch.rand, torch.rand_like,
    torch.randint, torch.randint_like, torch.randn, torch.randn_like, torch.randperm,
    torch.ops.aten.rand.default, torch.ops.aten.add_.Tensor, torch._assert])
def test_draws_and_writes_are_kept_when_unused(function):
    assert fx.Graph().create_node("call_function", function).is_impure()


@pytest.mark.parametrize("function", [
    torch.add, torch.linalg.svd, F.relu, F.dropout, torch.ops.aten.add.Tensor, torch.zeros])
def test_what_only_computes_is_not(function):
    assert not fx.Graph().create_node("call_function", function).is_impure()


def test_dead_code():
    gm = fx.symbolic_trace(lambda x: (torch.rand_like(x), torch.linalg.inv(x), x + 1)[2])
    assert gm.graph.eliminate_dead_code()
    names = [node.name for node in gm.graph.nodes]
    assert names == ["x", "rand_like", "add", "output"]


def test_only_nodes_are_moved():
    node = fx.Graph().placeholder("x")
    for move in (node.prepend, node.append):
        with pytest.raises(TypeError, match=r"^_prepend\(\) argument must be a Node$"):
            move(3)


def test_copies_of_nodes_stand_in_one_copy_of_their_graph():
    graph = fx.symbolic_trace(lambda x: x + 1).graph
    copied = copy.deepcopy(list(graph.nodes))
    assert copied == list(copied[0].graph.nodes) and copied[0].graph is not graph
    assert [node.name for node in copied] == [node.name for node in graph.nodes]
