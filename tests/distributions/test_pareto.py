"""The Pareto distribution."""

import math

import pytest
from distribution_cases import check_cdf, check_moments, check_recorded

import flambeau as torch
from flambeau.distributions import Exponential, Pareto


def test_recorded():
    check_recorded(torch, "Pareto")


def test_moments_and_cdf():
    check_moments(torch, Pareto(torch.tensor([1.0, 2.0], dtype=torch.float64), 9.0))
    check_cdf(torch, Pareto(torch.tensor([1.0, 2.0]), torch.tensor([0.5, 3.0])))


def test_logarithm_is_exponential():
    x = torch.tensor([2.5, 4.0, 90.0], dtype=torch.float64)
    scale, alpha = torch.tensor([2.0, 1.5], dtype=torch.float64)
    expected = Exponential(alpha).log_prob((x / scale).log()) - x.log()
    torch.testing.assert_close(Pareto(scale, alpha).log_prob(x), expected)


def test_heavy_tails():
    d = Pareto(2.0, torch.tensor([0.5, 1.5, 3.0]))
    assert d.mean.tolist() == pytest.approx([math.inf, 6.0, 3.0])
    assert d.variance.tolist() == pytest.approx([math.inf, math.inf, 3.0])
    assert d.mode.tolist() == [2.0] * 3


def test_support_starts_at_the_scale():
    d = Pareto(torch.tensor([1.0, 2.0]), 3.0)
    assert d.support.lower_bound.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="Expected value argument"):
        d.log_prob(torch.tensor([1.5, 1.5]))
    wide = d.expand((4, 2))
    assert wide.support.lower_bound.shape == (4, 2) and (wide.sample() >= wide.scale).all()
