"""Under vmap too a backward pass refuses values that were written to, by whatever name."""
import pytest

import flambeau
from flambeau.func import grad, vmap

X = flambeau.tensor([1.0, 2.0, 3.0])
SHARING = [
    lambda y: y.detach(), lambda y: flambeau.alias(y), lambda y: y[1:],
    lambda y: y.view(3, 1), lambda y: y.unbind()[0], lambda y: y.detach()[1:].detach(),
    lambda y: y.split(1)[2], lambda y: y.as_strided((2,), (1,))]


def write(sharing):
    def function(x):
        y = x.exp()
        with flambeau.no_grad():
            sharing(y).zero_()
        return y.sum()
    return function


def write_and_read(x):
    y = x.sin()
    y.mul_(y.detach())
    return y.sum()


@pytest.mark.parametrize("function", [write_and_read, *map(write, SHARING)])
def test_stale_values_are_refused(function):
    derivative = grad(function)
    for call in (lambda: derivative(X), lambda: vmap(derivative)(X[None]),
                 lambda: vmap(derivative, in_dims=1)(X[:, None]),
                 lambda: vmap(vmap(derivative))(X[None, None])):
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            call()


@pytest.mark.parametrize("sharing", SHARING)
def test_what_shares_memory_counts_writes_together(sharing):
    seen = []

    def function(x):
        y = x * 1
        part = sharing(y)
        before = part._version
        y.add_(1)
        part.mul_(2)
        seen.append((part._version - before, y._version - before))
        return y
    vmap(function)(flambeau.ones(2, 3))
    assert seen == [(2, 2)]
