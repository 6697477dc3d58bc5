"""The Laplace distribution."""

import math

import pytest
from distribution_cases import check_cdf, check_moments, check_recorded

import flambeau as torch
from flambeau.distributions import Exponential, Laplace


def test_recorded():
    check_recorded(torch, "Laplace")


def test_moments_and_cdf():
    check_moments(torch, Laplace(torch.tensor([0.0, 1.0], dtype=torch.float64), 2.0))
    check_cdf(torch, Laplace(torch.tensor([0.0, 1.0]), 2.0))


def test_two_exponentials_back_to_back():
    x = torch.tensor([-3.0, -0.5, 0.5, 3.0], dtype=torch.float64)
    two = torch.tensor(2.0, dtype=torch.float64)
    torch.testing.assert_close(Laplace(0 * two, two).log_prob(x),
                               Exponential(1 / two).log_prob(x.abs()) - math.log(2))


def test_closed_forms():
    d = Laplace(1.0, 2.0)
    assert d.entropy().item() == pytest.approx(1 + math.log(4))
    assert d.variance.item() == 8.0 and d.mode.item() == d.mean.item() == 1.0
    assert d.icdf(torch.tensor([0.0, 0.5, 1.0])).tolist() == [-math.inf, 1.0, math.inf]


def test_rsample_is_a_location_and_scale():
    loc, scale = torch.zeros(3, requires_grad=True), torch.ones(3, requires_grad=True)
    x = Laplace(loc, scale).rsample((4,))
    by_loc, by_scale = torch.autograd.grad(x.sum(), (loc, scale))
    assert by_loc.tolist() == [4.0] * 3
    torch.testing.assert_close(by_scale, x.detach().sum(0))
