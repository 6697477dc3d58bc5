"""What ops that take functions have in common: graphs, gradients, errors."""
from __future__ import annotations

import pytest
from hop_cases import branches

import flambeau as torch
from flambeau._higher_order_ops import associative_scan, map, scan
from flambeau._subclasses import FakeTensorMode
from flambeau.fx.experimental.proxy_tensor import make_fx

X = torch.arange(6.0).view(3, 2)


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


def test_gradients():
    x = torch.rand(4, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: prefixes(x)[1], x)
    assert torch.autograd.gradcheck(
        lambda x: scan(lambda c, x: (c * x, c + x), torch.ones(2).double(), x), x)
    assert torch.autograd.gradcheck(branches, x)
    assert torch.autograd.gradcheck(lambda x: map(lambda x: x.sin(), x), x)


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
