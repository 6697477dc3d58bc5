"""The Weibull distribution."""

import math

import pytest
from distribution_cases import check_cdf, check_moments, check_recorded

import flambeau as torch
from flambeau.distributions import Exponential, Weibull


def test_recorded():
    check_recorded(torch, "Weibull")


def test_moments_and_cdf():
    check_moments(torch, Weibull(torch.tensor([1.0, 2.0], dtype=torch.float64), 3.0))
    check_cdf(torch, Weibull(torch.tensor([1.0, 2.0]), torch.tensor([1.5, 3.0])))


def test_concentration_one_is_exponential():
    x = torch.tensor([0.1, 1.0, 5.0], dtype=torch.float64)
    two = torch.tensor(2.0, dtype=torch.float64)
    d, other = Weibull(two, two / 2), Exponential(1 / two)
    torch.testing.assert_close(d.log_prob(x), other.log_prob(x))
    torch.testing.assert_close(d.entropy(), other.entropy())
    torch.testing.assert_close(d.mean, other.mean)
    torch.testing.assert_close(d.variance, other.variance)


def test_rayleigh():
    """Concentration 2: mode, mean and density of the length of a normal vector."""
    d = Weibull(math.sqrt(2.0), 2.0)
    assert d.mode.item() == pytest.approx(1.0)
    assert d.mean.item() == pytest.approx(math.sqrt(math.pi / 2))
    x = torch.tensor([0.5, 2.0])
    torch.testing.assert_close(d.log_prob(x).exp(), x * (-(x**2) / 2).exp())


def test_expand():
    wide = Weibull(torch.tensor([1.0, 2.0]), 3.0).expand((4, 2))
    assert wide.concentration_reciprocal.shape == (4, 2) and wide.sample().shape == (4, 2)
    torch.testing.assert_close(wide.log_prob(torch.ones(2))[2],
                               Weibull(torch.tensor([1.0, 2.0]), 3.0).log_prob(torch.ones(2)))
