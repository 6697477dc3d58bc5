"""`checkpoint` and `checkpoint_sequential`: gradients, random numbers, arguments."""

import pytest
from checkpoint_cases import Counted, gradient

import flambeau
from flambeau.utils.checkpoint import checkpoint, checkpoint_sequential


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_gradients_are_the_same(use_reentrant):
    f = Counted(lambda x: (x.exp() * x.sin()).tanh())
    x = flambeau.linspace(-1, 1, 5)
    expected = gradient(f.functions[0], x)
    found = gradient(lambda x: checkpoint(f, x, use_reentrant=use_reentrant), x)
    flambeau.testing.assert_close(found, expected)
    assert f.runs == 2


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_random_numbers_are_the_same(use_reentrant):
    def f(x):
        return flambeau.nn.functional.dropout(x, 0.5)
    x = flambeau.ones(100, requires_grad=True)
    y = checkpoint(f, x, use_reentrant=use_reentrant)
    flambeau.rand(3)
    y.sum().backward()
    assert bool(((x.grad != 0) == (y != 0)).all())


def test_wrong_arguments():
    x = flambeau.ones(1, requires_grad=True)
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed explicitly"):
        checkpoint(flambeau.exp, x)
    with pytest.raises(ValueError, match="Unexpected keyword arguments: foo"):
        checkpoint(flambeau.exp, x, use_reentrant=True, foo=3)
    with pytest.raises(ValueError, match="only supported when use_reentrant=False"):
        checkpoint(flambeau.exp, x, use_reentrant=True, debug=True)
    with pytest.raises(ValueError, match="determinism_check should be one of"):
        checkpoint(flambeau.exp, x, use_reentrant=False, determinism_check="x")
    with pytest.raises(RuntimeError, match=r"incompatible with \.grad\(\)"):
        flambeau.autograd.grad(checkpoint(flambeau.exp, x, use_reentrant=True).sum(), x)


def test_keyword_and_other_arguments():
    x = flambeau.ones(2, requires_grad=True)
    y = checkpoint(lambda a, *, scale, flag: {"out": a * scale if flag else a}, x, flag=True,
                   scale=flambeau.tensor(3.0), use_reentrant=False)
    y["out"].exp().sum().backward()
    flambeau.testing.assert_close(x.grad, 3 * flambeau.exp(flambeau.tensor([3.0, 3.0])))


def test_sequential():
    x = flambeau.linspace(0, 1, 3)
    steps = [flambeau.sin, flambeau.exp, flambeau.tanh]
    found = gradient(lambda x: checkpoint_sequential(steps, 2, x, use_reentrant=False), x)
    flambeau.testing.assert_close(found, gradient(lambda x: x.sin().exp().tanh(), x))
