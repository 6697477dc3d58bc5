"""Graphs: text, changes, checks."""
from __future__ import annotations

import operator
import sys

import pytest
from fx_cases import Net

import flambeau
import flambeau as torch
from flambeau import fx, nn


@pytest.fixture
def graph():
    graph = fx.Graph()
    a = graph.placeholder("a")
    b = graph.placeholder("b", default_value=3)
    c = graph.call_function(torch.add, (a, b), {"alpha": 2})
    d = graph.call_method("relu", (c,))
    e = graph.call_function(operator.getitem, (d, slice(0, 2, None)))
    graph.output((e, d))
    return graph


def test_text(graph):
    assert str(graph) == """graph():
    %a : [num_users=1] = placeholder[target=a]
    %b : [num_users=1] = placeholder[target=b](default=3)
    %add : [num_users=1] = call_function[target=torch.add](args = (%a, %b), kwargs = {alpha: 2})
    %relu : [num_users=2] = call_method[target=relu](args = (%add,), kwargs = {})
    %getitem : [num_users=1] = call_function[target=operator.getitem](args = (%relu, \
slice(0, 2, None)), kwargs = {})
    return (getitem, relu)"""
    assert len(graph.nodes) == 6 and next(n.name for n in reversed(graph.nodes)) == "output"
    module = fx.GraphModule(nn.Module(), graph)
    assert [t.tolist() for t in module(flambeau.ones(3), flambeau.ones(3))] == [
        [3.0, 3.0], [3.0, 3.0, 3.0]]


def test_changes(graph):
    a, b, add, relu, getitem, output = graph.nodes
    graph.lint()
    with pytest.raises(RuntimeError, match=r"Tried to erase Node relu but it still had 2 users in "
                                           r"the graph: \{getitem: None, output: None\}!"):
        graph.erase_node(relu)
    with graph.inserting_after(add):
        neg = graph.call_function(torch.neg, (add,))
    relu.replace_input_with(add, neg)
    assert [n.name for n in graph.nodes][2:5] == ["add", "neg", "relu"]
    assert add.replace_all_uses_with(a) == [neg] and not add.users
    assert graph.eliminate_dead_code() and add not in list(graph.nodes)
    assert graph.find_nodes(op="call_function", target=torch.neg) == [neg]
    assert graph.output_node() is output and neg.next is relu and neg.prev is b
    neg.update_arg(0, b)
    relu.append(getitem)
    assert list(b.users) == [neg] and not a.users


def test_lint(graph):
    _, _, add, relu, *_ = graph.nodes
    relu.append(add)
    with pytest.raises(RuntimeError, match="Argument 'add' of Node 'relu' was used before"):
        graph.lint()
    with pytest.raises(AssertionError, match="op 'foo' is not in _legal_ops"):
        graph.create_node("foo", "x")
    module = fx.symbolic_trace(Net())
    with pytest.raises(AttributeError, match="no attribute `nope`"):
        module.graph.call_module("nope")


def test_names():
    graph = fx.Graph()
    names = [graph.call_function(f, (1,)).name for f in (torch.sum, torch.sum, torch.add, len)]
    names += [graph.create_node("call_module", t).name for t in ("0", "seq.0", "add", "fooBar")]
    assert names == ["sum_1", "sum_2", "add", "len_1", "_0", "seq_0", "add_1", "foo_bar"]


def test_print_tabular_needs_tabulate(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tabulate", None)
    with pytest.raises(ImportError):
        fx.symbolic_trace(lambda x: x).graph.print_tabular()
    assert "pip install tabulate" in capsys.readouterr().out
