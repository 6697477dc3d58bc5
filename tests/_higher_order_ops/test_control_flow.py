"""Ops that take functions: values, gradients, batches and graphs."""
from __future__ import annotations

import math

import pytest

import flambeau as torch
from flambeau._higher_order_ops import associative_scan, map, out_dtype, scan
from flambeau._subclasses import FakeTensorMode
from flambeau.fx.experimental.proxy_tensor import make_fx

X = torch.arange(6.0).view(3, 2)


def branches(x):
    return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: {"a": x}["a"].cos(), (x,))


def loop(x):
    return torch.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2),
                            (torch.tensor(0), x))


def states(x):
    return scan(lambda c, x: (c + x, c * x), torch.zeros(2), x)


def prefixes(x):
    return associative_scan(lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (x, x), 0,
                            combine_mode="generic")


@pytest.mark.parametrize("function", [branches, loop, states, prefixes,
                                      lambda x: map(lambda x, y: x + y, x, 1.0)])
def test_graphs(function):
    graph = make_fx(function)(X)
    assert any("higher_order" in str(getattr(n.target, "__module__", "")) for n in
               graph.graph.nodes)
    torch.testing.assert_close(graph(X), function(X))
    with FakeTensorMode() as mode:
        found = function(mode.from_tensor(X))
    for fake, real in zip(torch.utils._pytree.tree_leaves(found),
                          torch.utils._pytree.tree_leaves(function(X))):
        assert fake.shape == real.shape and fake.dtype is real.dtype


def test_both_branches_are_in_the_graph():
    graph = make_fx(branches)(X)
    torch.testing.assert_close(graph(-X), (-X).cos())
    assert "cond(gt, true_graph_0, false_graph_0, (x_1,))" in graph.code
    assert "sin.default" in graph.true_graph_0.code and "cos.default" in graph.false_graph_0.code


def test_a_branch_for_each_slice():
    found = torch.vmap(lambda p, x: torch.cond(p, torch.sin, torch.cos, (x,)))(
        torch.tensor([True, False, True]), X)
    torch.testing.assert_close(found, torch.stack([X[0].sin(), X[1].cos(), X[2].sin()]))


@pytest.mark.parametrize("length", [1, 2, 5, 8, 13])
@pytest.mark.parametrize("reverse", [False, True])
def test_scans_against_loops(length, reverse):
    torch.manual_seed(length)
    x, y = torch.rand(2, length, dtype=torch.float64), torch.rand(2, length, dtype=torch.float64)
    found = associative_scan(lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (x, y), 1,
                             reverse=reverse, combine_mode="generic")[1]
    state, expected = torch.zeros(2, dtype=torch.float64), []
    for i in reversed(range(length)) if reverse else range(length):
        state = state * x[:, i] + y[:, i] if expected else y[:, i]
        expected.append(state)
    expected = torch.stack(expected[::-1] if reverse else expected, 1)
    torch.testing.assert_close(found, expected)
    final, each = scan(lambda c, xy: (c * xy[0] + xy[1], c), torch.zeros(2).double(), (x, y),
                       dim=1, reverse=reverse)
    torch.testing.assert_close(final, expected[:, 0 if reverse else -1])
    assert each.shape == (2, length)


def test_gradients():
    x = torch.rand(4, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: prefixes(x)[1], x)
    assert torch.autograd.gradcheck(
        lambda x: scan(lambda c, x: (c * x, c + x), torch.ones(2).double(), x), x)
    assert torch.autograd.gradcheck(branches, x)
    assert torch.autograd.gradcheck(lambda x: map(lambda x: x.sin(), x), x)


def test_wider_results():
    x = torch.full((2, 2), 100, dtype=torch.int8)
    assert out_dtype(torch.ops.aten.mm.default, torch.int32, x, x).tolist() == [[20000] * 2] * 2
    with pytest.raises(ValueError, match="must be an OpOverload"):
        out_dtype(torch.mm, torch.int32, x, x)


def test_attention():
    torch.manual_seed(0)
    q, k, v = (torch.rand(1, 2, 4, 3, dtype=torch.float64, requires_grad=True) for _ in range(3))
    op = torch.ops.higher_order.flex_attention

    def bias(score, b, h, m, n):
        return score + (m - n) * 0.1

    def causal(b, h, m, n):
        return m >= n
    scale = 1 / math.sqrt(3)
    out, sums, _ = op(q, k, v, bias, (causal,), scale, {})
    place = torch.arange(4).double()
    scores = q @ k.mT * scale + (place[:, None] - place) * 0.1
    scores = scores.masked_fill(place[:, None] < place, -math.inf)
    torch.testing.assert_close(out, scores.softmax(-1) @ v)
    torch.testing.assert_close(sums * math.log(2), scores.logsumexp(-1))
    wanted = torch.autograd.grad(out.sum(), (q, k, v))
    found = torch.ops.higher_order.flex_attention_backward(
        q, k, v, out, sums, torch.ones_like(out), None, bias, None, (causal,), scale, {})
    for mine, theirs in zip(found, wanted):
        torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda: associative_scan(3, X, 0), ValueError, "Combine_fn must be a callable, but got 3"),
    (lambda: associative_scan(torch.add, X, 0), ValueError, "need to be on CUDA or XPU"),
    (lambda: associative_scan(torch.add, X, 0, combine_mode="a"), ValueError, "but got a"),
    (lambda: scan(3, X, X), RuntimeError, "Combine_fn must be a callable"),
    (lambda: scan(lambda c, x: (c.sum(), x), X[0], X), RuntimeError, "to have same metadata"),
    (lambda: map(torch.add, 3), RuntimeError, "can only consist of tensors"),
    (lambda: torch.cond(True, torch.sin, torch.cos, X), RuntimeError, "Expect operands to be"),
    (lambda: torch.cond(X > 0, torch.sin, torch.cos, (X,)), RuntimeError, "single-element tensor"),
])
def test_bad_calls(call, error, text):
    with pytest.raises(error, match=text):
        call()
