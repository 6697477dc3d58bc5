"""Graphs: text, changes, checks; interpreters; replacing patterns; copies."""
from __future__ import annotations

import copy
import operator
import pickle
import subprocess
import sys

import pytest

import flambeau
import flambeau as torch
from flambeau import fx, nn
from flambeau.fx.passes.shape_prop import ShapeProp


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


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(flambeau.ones(2, 2))
        self.inner = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        self.register_buffer("shift", flambeau.ones(2))

    def forward(self, x):
        return self.inner(x @ self.weight) + self.shift


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


def test_modules_keep_their_state():
    net = Net()
    module = fx.symbolic_trace(net)
    x = flambeau.randn(3, 2)
    assert flambeau.equal(module(x), net(x))
    assert module.state_dict().keys() == net.state_dict().keys()
    assert [n.op for n in module.graph.nodes] == [
        "placeholder", "get_attr", "call_function", "call_module", "call_module", "get_attr",
        "call_function", "output"]
    module(x).sum().backward()
    assert net.weight.grad is not None         # they share their parameters


def test_copies():
    module = fx.symbolic_trace(Net())
    x = flambeau.randn(3, 2)
    for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert other.code == module.code and flambeau.equal(other(x), module(x))
        assert other.weight is not module.weight
    other = copy.deepcopy(module)
    other.graph.output_node().args = (next(iter(other.graph.nodes)),)
    other.recompile()
    assert other(x) is x and module(x) is not x


def test_to_folder(tmp_path):
    module = fx.symbolic_trace(Net())
    module.to_folder(tmp_path / "made", "Made")
    program = ("from made import Made; import flambeau; "
               "print(Made()(flambeau.ones(1, 2)).tolist())")
    found = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True,
                           text=True, check=True, env={"PYTHONPATH": ":".join(sys.path)})
    assert found.stdout.strip() == str(module(flambeau.ones(1, 2)).tolist())


def test_interpreter_and_transformer():
    net = Net()
    module = fx.symbolic_trace(net)
    x = flambeau.randn(3, 2)
    assert flambeau.equal(fx.Interpreter(module).run(x), net(x))
    with pytest.raises(RuntimeError, match="Expected positional argument for parameter x"):
        fx.Interpreter(module).run()

    class Double(fx.Transformer):
        def call_module(self, target, args, kwargs):
            return 2 * super().call_module(target, args, kwargs)
    made = Double(module).transform()
    expected = 2 * net.inner[1](2 * net.inner[0](x @ net.weight)) + net.shift
    assert flambeau.allclose(made(x), expected)


def test_shapes():
    module = fx.symbolic_trace(Net())
    ShapeProp(module).propagate(flambeau.ones(5, 2))
    assert all(n.meta["tensor_meta"].shape[-1] == 2 for n in module.graph.nodes)


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


def test_proxies_by_hand():
    graph = fx.Graph()
    x = fx.Proxy(graph.placeholder("x"))
    graph.output((torch.cat([x, x.relu()]) * 2 + flambeau.nn.functional.softmax(x, 0)).node)
    graph.lint()
    assert [n.op for n in graph.nodes][1:4] == ["call_method", "call_function", "call_function"]
    assert repr(x) == "Proxy(x)"


def test_print_tabular_needs_tabulate(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tabulate", None)
    with pytest.raises(ImportError):
        fx.symbolic_trace(lambda x: x).graph.print_tabular()
    assert "pip install tabulate" in capsys.readouterr().out


def test_functions_in_python_are_shown_with_their_defaults():
    functional = torch.nn.functional

    def program(x):
        a = functional.dropout(x, 0.3)
        b = functional.layer_norm(a, (3,))
        return functional.softmax(b, -1)
    shown = [(n.target, n.args[1:], dict(n.kwargs)) for n in torch.fx.symbolic_trace(program)
             .graph.nodes if n.op == "call_function"]
    assert shown == [
        (functional.dropout, (), {"p": 0.3, "training": True, "inplace": False}),
        (functional.layer_norm, ((3,),), {"weight": None, "bias": None, "eps": 1e-05}),
        (functional.softmax, (), {"dim": -1, "_stacklevel": 3, "dtype": None})]


def test_pooling_with_and_without_indices_are_two_functions():
    functional = torch.nn.functional
    graph = torch.fx.symbolic_trace(lambda x: (
        functional.max_pool2d(x, 2), functional.max_pool2d(x, 2, return_indices=True))).graph
    found = [n for n in graph.nodes if n.op == "call_function"]
    assert [n.target for n in found] == [functional.max_pool2d, functional.max_pool2d_with_indices]
    assert found[0].kwargs == {"stride": None, "padding": 0, "dilation": 1, "ceil_mode": False,
                               "return_indices": False}
    with pytest.raises(torch.fx.proxy.TraceError, match="Proxy object cannot be iterated"):
        torch.fx.symbolic_trace(functional.max_pool2d)
