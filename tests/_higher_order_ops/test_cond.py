"""One of two branches."""
from __future__ import annotations

from hop_cases import branches

import flambeau as torch
from flambeau.fx.experimental.proxy_tensor import make_fx

X = torch.arange(6.0).view(3, 2)


def test_both_branches_are_in_the_graph():
    graph = make_fx(branches)(X)
    torch.testing.assert_close(graph(-X), (-X).cos())
    assert "cond(gt, true_graph_0, false_graph_0, (x_1,))" in graph.code
    assert "sin.default" in graph.true_graph_0.code and "cos.default" in graph.false_graph_0.code


def test_a_branch_for_each_slice():
    found = torch.vmap(lambda p, x: torch.cond(p, torch.sin, torch.cos, (x,)))(
        torch.tensor([True, False, True]), X)
    torch.testing.assert_close(found, torch.stack([X[0].sin(), X[1].cos(), X[2].sin()]))
