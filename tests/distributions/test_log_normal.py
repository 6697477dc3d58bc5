"""The log-normal distribution."""

import math

import pytest
from distribution_cases import check_cdf, check_moments, check_recorded

import flambeau as torch
from flambeau.distributions import LogNormal, Normal, kl_divergence


def test_recorded():
    check_recorded(torch, "LogNormal")


def test_moments_and_cdf():
    check_moments(torch, LogNormal(torch.tensor([0.0, 1.0], dtype=torch.float64), 0.5))
    check_cdf(torch, LogNormal(torch.tensor([0.0, 1.0]), 0.5))


def test_logarithm_is_normal():
    x = torch.tensor([0.1, 1.0, 5.0], dtype=torch.float64)
    loc, scale = torch.tensor([0.3, 0.8], dtype=torch.float64)
    d, normal = LogNormal(loc, scale), Normal(loc, scale)
    torch.testing.assert_close(d.log_prob(x), normal.log_prob(x.log()) - x.log())
    torch.testing.assert_close(d.entropy(), normal.entropy() + loc)
    torch.testing.assert_close(d.icdf(torch.tensor(0.3)), normal.icdf(torch.tensor(0.3)).exp())


def test_closed_forms():
    d = LogNormal(1.0, 0.5)
    assert d.mean.item() == pytest.approx(math.exp(1.125))
    assert d.mode.item() == pytest.approx(math.exp(0.75))
    assert d.loc.item() == 1.0 and d.scale.item() == 0.5


def test_divergence_is_that_of_the_normals():
    p, q = LogNormal(0.0, 1.0), LogNormal(1.0, 2.0)
    torch.testing.assert_close(kl_divergence(p, q), kl_divergence(p.base_dist, q.base_dist))


def test_bad_values():
    with pytest.raises(ValueError, match=r"support \(GreaterThan\(lower_bound=0.0\)\)"):
        LogNormal(0.0, 1.0).log_prob(torch.tensor(-1.0))
