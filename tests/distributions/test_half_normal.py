"""The half-normal distribution."""

import math

from distribution_cases import check_cdf, check_moments, check_recorded

import flambeau as torch
from flambeau.distributions import HalfNormal, kl_divergence


def test_recorded():
    check_recorded(torch, "HalfNormal")


def test_moments():
    d = HalfNormal(torch.tensor([0.5, 3.0], dtype=torch.float64))
    check_moments(torch, d)
    torch.testing.assert_close(d.mean, d.scale * math.sqrt(2 / math.pi))
    torch.testing.assert_close(d.variance + d.mean**2, d.scale**2)


def test_cdf():
    check_cdf(torch, HalfNormal(torch.tensor([1.0, 2.0])))


def test_divergence_is_that_of_normals():
    p, q = HalfNormal(torch.tensor(1.0)), HalfNormal(torch.tensor(2.0))
    assert math.isclose(kl_divergence(p, q).item(), math.log(2) + 1 / 8 - 1 / 2, rel_tol=1e-6)
