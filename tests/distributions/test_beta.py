"""The beta distribution."""

import math

import pytest
from distribution_cases import check_moments, check_recorded

import flambeau as torch
from flambeau.distributions import Beta, Dirichlet


def test_recorded():
    check_recorded(torch, "Beta")


def test_moments():
    check_moments(torch, Beta(torch.tensor([0.5, 2.0]).double(), torch.tensor([1.5, 3.0]).double()))


def test_uniform_and_arcsine():
    x = torch.tensor([0.1, 0.5, 0.9], dtype=torch.float64)
    torch.testing.assert_close(Beta(torch.ones(3).double(), 1.0).log_prob(x), torch.zeros_like(x))
    half = torch.tensor(0.5, dtype=torch.float64)
    torch.testing.assert_close(Beta(half, half).log_prob(x).exp(),
                               1 / (math.pi * (x * (1 - x)).sqrt()))


def test_is_a_dirichlet_distribution_of_two():
    d = Beta(torch.tensor([2.0]), torch.tensor([5.0]))
    assert (d.concentration1.item(), d.concentration0.item()) == (2.0, 5.0)
    other = Dirichlet(torch.tensor([[2.0, 5.0]]))
    torch.testing.assert_close(d.entropy(), other.entropy())
    torch.manual_seed(1)
    sample = d.sample()
    torch.manual_seed(1)
    assert torch.equal(sample, other.sample()[..., 0])


@pytest.mark.parametrize("a, b, mode", [(3.0, 2.0, 2 / 3), (0.5, 2.0, 0.0), (2.0, 0.5, 1.0),
                                        (1.0, 1.0, math.nan), (0.5, 0.5, 1.0)])
def test_mode(a, b, mode):
    assert Beta(a, b).mode.item() == pytest.approx(mode, nan_ok=True)


def test_rsample_gradient():
    """The mean of samples follows the mean a / (a + b), whose slope by a is b / (a + b)^2."""
    a = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    b = torch.tensor(3.0, dtype=torch.float64)
    torch.manual_seed(0)
    slope, = torch.autograd.grad(Beta(a, b).rsample((20000,)).mean(), a)
    assert slope.item() == pytest.approx(3 / 25, rel=0.03)
