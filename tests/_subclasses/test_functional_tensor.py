"""Functional tensors: writes give new values, and views follow."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau._subclasses.functional_tensor import (
    FunctionalTensor,
    FunctionalTensorMode,
    disable_functional_mode,
    dispatch_functionalize,
    mb_unwrap_functional_tensor,
)
from flambeau.fx.experimental.proxy_tensor import make_fx


def several(x):
    y = x.clone()
    first = y[0]
    first.mul_(2)
    y.add_(1)
    z = torch.zeros(3)
    z.copy_(y)
    torch.add(z, first, out=z)
    return z.t() + first


def strided(x):
    y = x.clone().view(2, 3).transpose(0, 1)
    y[1:].fill_(7.0)
    y.diagonal().zero_()
    return y.reshape(-1)


@pytest.mark.parametrize(("function", "x"), [
    (several, torch.arange(3.0)), (strided, torch.arange(6.0)),
    (lambda x: x.add_(1).sin_(), torch.arange(2.0)),
])
def test_functions_that_write(function, x):
    given = x.clone()
    found = dispatch_functionalize(function)(given)
    torch.testing.assert_close(found, function(x.clone()))
    assert torch.equal(given, x)
    graph = make_fx(dispatch_functionalize(function))(x.clone())
    assert not any(n.target._schema.is_mutable for n in graph.graph.nodes
                   if n.op == "call_function" and hasattr(n.target, "_schema"))
    torch.testing.assert_close(graph(x.clone()), function(x.clone()))


def test_modes():
    x = torch.zeros(2)
    with FunctionalTensorMode() as mode:
        y = FunctionalTensor.to_functional(x)
        assert isinstance(torch.ones(2) + y, FunctionalTensor)
        with disable_functional_mode() as found:
            assert found is mode and type(torch.ones(2)) is torch.Tensor
    y.add_(1)
    assert mb_unwrap_functional_tensor(y).tolist() == [1, 1] and x.tolist() == [0, 0]
    assert mb_unwrap_functional_tensor(x) is x
