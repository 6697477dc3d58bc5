"""Forward mode: dual numbers against closed forms, and against reverse mode."""
import pytest

import flambeau as torch
from flambeau.autograd import forward_ad
from flambeau.func import jacfwd, jacrev, jvp, vjp


def test_the_product_and_the_chain_rule():
    x, t = torch.tensor([0.3, 1.2], dtype=torch.float64), torch.tensor([1.0, -2.0]).double()
    value, tangent = jvp(lambda a: a.sin() * a.exp(), (x,), (t,))
    assert torch.allclose(value, x.sin() * x.exp())
    assert torch.allclose(tangent, (x.cos() + x.sin()) * x.exp() * t)


def test_forward_and_reverse_are_transposes():
    x = torch.rand(3, dtype=torch.float64)
    f = lambda a: torch.stack([a.prod(), (a * a).sum(), a.logsumexp(0)])
    u, v = torch.rand(3).double(), torch.rand(3).double()
    tangent = jvp(f, (x,), (u,))[1]
    gradient, = vjp(f, x)[1](v)
    assert torch.allclose(tangent @ v, gradient @ u)
    assert torch.allclose(jacfwd(f)(x), jacrev(f)(x))


def test_derivatives_of_derivatives():
    x = torch.tensor(0.7, dtype=torch.float64)
    one = torch.ones((), dtype=torch.float64)
    first = lambda a: jvp(torch.sin, (a,), (one,))[1]
    assert torch.allclose(jvp(first, (x,), (one,))[1], -x.sin())


def test_duals_pass_through_views_and_writes():
    with forward_ad.dual_level():
        x = forward_ad.make_dual(torch.ones(3), torch.tensor([1.0, 2.0, 3.0]))
        y = x * 1
        y[:2].mul_(3)
        assert forward_ad.unpack_dual(y).tangent.tolist() == [3.0, 6.0, 3.0]
        assert forward_ad.unpack_dual(y.flip(0)[0]).tangent == 3


def test_a_constant_has_no_tangent():
    with forward_ad.dual_level():
        assert forward_ad.unpack_dual(torch.ones(2)).tangent is None
        x = forward_ad.make_dual(torch.ones(2), torch.ones(2))
        assert forward_ad.unpack_dual(x > 0).tangent is None


def test_refusals():
    with pytest.raises(RuntimeError, match="level"):
        forward_ad.make_dual(torch.ones(2), torch.ones(2))
    with forward_ad.dual_level(), pytest.raises(RuntimeError, match=r"size|shape"):
        forward_ad.make_dual(torch.ones(2), torch.ones(3))
    with pytest.raises(RuntimeError):
        jvp(torch.sin, (torch.ones(2),), (torch.ones(3),))
