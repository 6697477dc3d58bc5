"""The inverse gamma distribution."""

import pytest
from distribution_cases import check_moments, check_recorded

import flambeau as torch
from flambeau.distributions import Gamma, InverseGamma


def test_recorded():
    check_recorded(torch, "InverseGamma")


def test_density_is_that_of_the_reciprocal():
    x = torch.tensor([0.2, 1.0, 5.0], dtype=torch.float64)
    parameters = torch.tensor([2.5, 1.5], dtype=torch.float64)
    density = Gamma(*parameters).log_prob(1 / x) - 2 * x.log()
    torch.testing.assert_close(InverseGamma(*parameters).log_prob(x), density)


def test_moments():
    check_moments(torch, InverseGamma(torch.tensor([9.0, 12.0], dtype=torch.float64), 2.0))
    d = InverseGamma(torch.tensor([0.5, 1.5, 3.0]), 2.0)
    assert d.mean.tolist() == [float("inf"), 4.0, 1.0]
    assert d.variance.tolist() == [float("inf"), float("inf"), 1.0]
    assert d.mode.tolist() == pytest.approx([2 / 1.5, 2 / 2.5, 0.5])


def test_entropy():
    """That of the gamma distribution and the mean of 2 log x."""
    a, b = torch.tensor([2.5, 1.5], dtype=torch.float64)
    expected = Gamma(a, b).entropy() + 2 * (b.log() - a.digamma())
    torch.testing.assert_close(InverseGamma(a, b).entropy(), expected)


def test_samples():
    torch.manual_seed(2)
    x = InverseGamma(3.0, 2.0).sample((4,))
    torch.manual_seed(2)
    torch.testing.assert_close(x, 1 / Gamma(3.0, 2.0).sample((4,)))
    wide = InverseGamma(torch.tensor([3.0]), 2.0).expand((5, 1))
    assert wide.concentration.shape == wide.rate.shape == (5, 1)
