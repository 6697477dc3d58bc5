"""The gamma distribution."""

import math

import pytest
from distribution_cases import check_moments, check_recorded

import flambeau as torch
from flambeau.distributions import Gamma


def test_recorded():
    check_recorded(torch, "Gamma")


def test_moments():
    check_moments(torch, Gamma(torch.tensor([0.5, 3.0], dtype=torch.float64), 2.0))


def test_whole_concentration_is_a_sum_of_exponentials():
    """Erlang: P(x) = 1 - exp(-bx) (1 + bx + (bx)^2 / 2) for concentration 3."""
    x = torch.tensor([0.1, 1.0, 4.0], dtype=torch.float64)
    d = Gamma(torch.tensor(3.0, dtype=torch.float64), 2.0)
    bx = 2 * x
    torch.testing.assert_close(d.cdf(x), 1 - (-bx).exp() * (1 + bx + bx**2 / 2))
    torch.testing.assert_close(d.log_prob(x).exp(), 2 * (-bx).exp() * bx**2 / 2)


def test_at_zero():
    zero = torch.tensor(0.0)
    assert Gamma(1.0, 3.0).log_prob(zero).item() == pytest.approx(math.log(3))
    assert Gamma(2.0, 3.0).log_prob(zero).item() == -math.inf
    assert Gamma(0.5, 3.0).log_prob(zero).item() == math.inf
    assert Gamma(0.5, 3.0).mode.item() == 0.0 and Gamma(2.5, 3.0).mode.item() == 0.5


def test_samples_are_never_zero():
    torch.manual_seed(0)
    assert (Gamma(torch.tensor(1e-3), 1.0).sample((1000,)) > 0).all()


def test_rsample_gradient():
    """E x = a / b: slopes 1/b and -a/b^2."""
    a, b = (torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (2.0, 3.0))
    torch.manual_seed(0)
    by_a, by_b = torch.autograd.grad(Gamma(a, b).rsample((20000,)).mean(), (a, b))
    assert by_a.item() == pytest.approx(1 / 3, rel=0.02)
    assert by_b.item() == pytest.approx(-2 / 9, rel=0.02)


def test_log_prob_gradient():
    a, b = (torch.tensor([v, 0.5], dtype=torch.float64, requires_grad=True) for v in (2.0, 3.0))
    x = torch.tensor([0.5, 2.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda a, b, x: Gamma(a, b).log_prob(x), (a, b, x))
    assert torch.autograd.gradcheck(lambda a, b: Gamma(a, b).entropy(), (a, b))
