"""Passes over graphs: splitting, matching, managers, what is supported."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import fx, nn
from flambeau.fx import _graph_pickler
from flambeau.fx.experimental.proxy_tensor import make_fx
from flambeau.fx.passes.dialect.common.cse_pass import CSEPass, get_CSE_banned_ops
from flambeau.fx.passes.fake_tensor_prop import FakeTensorProp
from flambeau.fx.passes.infra.pass_base import PassBase, PassResult
from flambeau.fx.passes.infra.pass_manager import (
    PassManager,
    pass_result_wrapper,
    this_before_that_pass_constraint,
)
from flambeau.fx.passes.operator_support import OperatorSupport, any_chain, chain, create_op_support
from flambeau.fx.passes.regional_inductor import regional_inductor
from flambeau.fx.passes.split_module import split_module
from flambeau.fx.passes.split_utils import getattr_recursive, split_by_tags
from flambeau.fx.passes.tools_common import get_node_target, legalize_graph, stable_topological_sort
from flambeau.fx.passes.utils.matcher_utils import SubgraphMatcher

X = torch.arange(6.0).view(2, 3)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 4), nn.Linear(4, 2)
        self.scale = nn.Parameter(torch.ones(2))

    def forward(self, x, y=1.0):
        h = self.a(x).relu()
        return self.b(h) * self.scale + y, h


@pytest.mark.parametrize("original", [False, True])
def test_split_module(original):
    model = Model()
    gm = fx.symbolic_trace(model)
    parts = split_module(gm, model, lambda n: int(n.name not in ("a", "relu")),
                         keep_original_order=original)
    assert [n for n, _ in parts.named_children()] == ["submod_0", "submod_1"]
    for mine, theirs in zip(parts(X), model(X)):
        torch.testing.assert_close(mine, theirs)


def test_split_by_tags():
    model = Model()
    gm = fx.symbolic_trace(model)
    for node in gm.graph.nodes:
        node.tag = "first" if node.name in ("a", "relu") else "second"
    parts, names = split_by_tags(gm, ["first", "second"], return_fqn_mapping=True)
    for mine, theirs in zip(parts(X, 2.0), model(X, 2.0)):
        torch.testing.assert_close(mine, theirs)
    assert names == {"first.a": "a", "second.b": "b"}
    assert getattr_recursive(model, "a.weight") is model.a.weight
    assert getattr_recursive(model, "a.nothing") is None


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


def test_manager():
    def swap(old, new):
        def run(gm):
            for node in gm.graph.find_nodes(op="call_function", target=old):
                node.target = new
            gm.recompile()
        return pass_result_wrapper(run)
    first, second = swap(torch.sin, torch.cos), swap(torch.cos, torch.neg)
    manager = PassManager([second, first], [this_before_that_pass_constraint(first, second)])
    found = manager(fx.symbolic_trace(lambda x: torch.sin(x)))
    assert torch.equal(found.graph_module(X), -X)

    class Nothing(PassBase):
        def call(self, gm):
            return PassResult(gm, False)
    assert not PassManager([Nothing()])(fx.symbolic_trace(lambda x: x)).modified
    with pytest.raises(TypeError, match="should only take in one variable"):
        manager.add_checks(lambda a, b: None)
    circular = [this_before_that_pass_constraint(first, second),
                this_before_that_pass_constraint(second, first)]
    with pytest.raises(RuntimeError, match="Circular dependency"):
        PassManager([first, second], circular).solve_constraints()
    with pytest.raises(Exception, match="An error occurred when running"):
        PassManager([lambda gm: None])(fx.symbolic_trace(lambda x: x))


def test_support():
    gm = fx.symbolic_trace(Model())
    modules = dict(gm.named_modules())
    nodes = {n.name: n for n in gm.graph.nodes}
    assert get_node_target(modules, nodes["a"]).endswith("linear.Linear")
    table = OperatorSupport({get_node_target(modules, nodes["a"]): None})
    assert table.is_node_supported(modules, nodes["a"])
    assert not table.is_node_supported(modules, nodes["relu"])
    yes = create_op_support(lambda modules, node: True)
    assert any_chain(table, yes).is_node_supported(modules, nodes["relu"])
    assert not chain(table, yes).is_node_supported(modules, nodes["relu"])


def test_order_and_repetition():
    gm = fx.symbolic_trace(Model())
    before = [n.name for n in gm.graph.nodes]
    assert sorted(n.name for n in legalize_graph(gm).graph.nodes) == sorted(before)
    assert [n.name for n in stable_topological_sort(fx.symbolic_trace(Model())).graph.nodes] == \
        before
    graph = make_fx(lambda x: x.sin() * x.sin() + torch.rand(3) - torch.rand(3))(X)
    found = CSEPass()(graph)
    count = [len(found.graph_module.graph.find_nodes(op="call_function", target=t)) for t in (
        torch.ops.aten.sin.default, torch.ops.aten.rand.default)]
    assert found.modified and count == [1, 2]


def test_what_is_made_twice_is_made_once_unless_that_is_banned():
    graph = make_fx(lambda x: torch.zeros(3) + torch.zeros(3) * x.sin() * x.sin())(X[0, :3])
    aten = torch.ops.aten
    def counts(banned):
        found = CSEPass(banned_ops=banned)(graph).graph_module.graph
        return [len(found.find_nodes(op="call_function", target=t))
                for t in (aten.zeros.default, aten.sin.default)]
    assert counts(None) == counts(get_CSE_banned_ops()) == [1, 1]
    assert counts({aten.sin}) == [1, 2] and counts({aten.zeros.default}) == [2, 1]
    banned = get_CSE_banned_ops()
    assert {aten.rand, aten.native_dropout, aten.add_, aten.lerp_} <= banned
    assert not {aten.add, aten.sin, aten.view} & banned


def test_values_of_nodes():
    gm = fx.symbolic_trace(Model())
    out, _ = FakeTensorProp(gm).propagate(X, 1.0)
    assert out.shape == (2, 2)
    node, = gm.graph.find_nodes(op="call_method", target="relu")
    assert repr(node.meta["val"]).startswith("FakeTensor(..., size=(2, 4)")


def test_pickled_graphs():
    gm = make_fx(lambda x: (x.sin(), [x + torch.tensor([1.0, 2.0, 3.0])]))(X)
    data = _graph_pickler.GraphPickler.dumps(gm)
    again = _graph_pickler.GraphPickler.loads(data, None)
    assert again.code == gm.code
    torch.testing.assert_close(again(X), gm(X))


def test_there_is_no_compiler():
    gm = make_fx(lambda x: x.sin())(X)
    assert regional_inductor(gm) is gm
    next(iter(gm.graph.nodes)).meta["custom"] = {"compile_with_inductor": True}
    with pytest.raises(NotImplementedError, match="TorchInductor"):
        regional_inductor(gm)


def test_split_module_hands_attributes_to_the_parts():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.sub = nn.Module()
            self.sub.w = nn.Parameter(torch.ones(2))
            self.p = nn.Parameter(torch.ones(2))

        def forward(self, x):
            return torch.sin(x * self.sub.w) + self.p
    traced = fx.symbolic_trace(Net())
    parts = split_module(traced, traced, lambda node: int(node.name == "add"))
    assert parts.code.strip() == """def forward(self, x):
    sub_w = self.sub.w
    p = self.p
    submod_0 = self.submod_0(x, sub_w);  x = sub_w = None
    submod_1 = self.submod_1(submod_0, p);  submod_0 = p = None
    return submod_1"""
    assert [name for name, _ in parts.named_parameters()] == ["p", "sub.w"]
    x = torch.ones(2)
    torch.testing.assert_close(parts(x), traced(x))
    unnamed = split_module(traced, traced, lambda node: int(node.name == "add"),
                           keep_original_input_name=False)
    assert "def forward(self, arg_0, arg_1):" in unnamed.submod_1.code
