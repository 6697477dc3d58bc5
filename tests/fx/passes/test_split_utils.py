"""Modules split by the tags of their nodes."""
from __future__ import annotations

from fx_cases import Model

import flambeau as torch
from flambeau import fx
from flambeau.fx.passes.split_utils import getattr_recursive, split_by_tags

X = torch.arange(6.0).view(2, 3)


def test_split_by_tags():
    model = Model()
    gm = fx.symbolic_trace(model)
    for node in gm.graph.nodes:
        node.tag = "first" if node.name in ("a", "relu") else "second"
    parts, names = split_by_tags(gm, ["first", "second"], return_fqn_mapping=True)
    for mine, theirs in zip(parts(X, 2.0), model(X, 2.0)):
        torch.testing.assert_close(mine, theirs)
    assert names == {
        "a": "first.a", "b": "second.b", "scale": "second.scale"}
    assert getattr_recursive(model, "a.weight") is model.a.weight
    assert getattr_recursive(model, "a.nothing") is None


def test_parts_give_their_results_in_the_order_in_which_others_take_them():
    def model(x):
        a, b, c = x.sin(), x.cos(), x.exp()
        return c.neg() + b, a
    gm = fx.symbolic_trace(model)
    for node in gm.graph.nodes:
        node.tag = "first" if node.name in ("sin", "cos", "exp") else "second"
    results = split_by_tags(gm, ["first", "second"]).first.graph.output_node().args[0]
    assert [node.name for node in results] == ["exp", "cos", "sin"]
