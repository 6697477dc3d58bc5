"""The Gumbel distribution."""

import math

import pytest
from distribution_cases import check_cdf, check_moments, check_recorded

import flambeau as torch
from flambeau.distributions import Gumbel


def test_recorded():
    check_recorded(torch, "Gumbel")


def test_moments_and_cdf():
    check_moments(torch, Gumbel(torch.tensor([0.0, 1.0], dtype=torch.float64), 2.0))
    check_cdf(torch, Gumbel(torch.tensor([0.0, 1.0]), 2.0))


def test_closed_forms():
    d = Gumbel(torch.tensor(1.0, dtype=torch.float64), 2.0)
    gamma = 0.57721566490153286
    assert d.mean.item() == pytest.approx(1 + 2 * gamma)
    assert d.stddev.item() == pytest.approx(2 * math.pi / math.sqrt(6))
    assert d.entropy().item() == pytest.approx(math.log(2) + 1 + gamma)
    assert d.cdf(torch.tensor(1.0)).item() == pytest.approx(math.exp(-1))
    assert d.mode.item() == 1.0


def test_maximum_of_gumbels_is_a_gumbel():
    """Of n variables: the mode moves by the logarithm of n."""
    x = torch.tensor([-1.0, 0.5, 3.0], dtype=torch.float64)
    d = Gumbel(torch.zeros(3).double(), 1.0)
    shifted = Gumbel(torch.full((3,), math.log(4)).double(), 1.0)
    torch.testing.assert_close(d.cdf(x) ** 4, shifted.cdf(x), rtol=1e-6, atol=0)


def test_expand():
    wide = Gumbel(torch.tensor([0.0, 1.0]), 2.0).expand((3, 2))
    assert wide.scale.shape == (3, 2)
    torch.testing.assert_close(wide.log_prob(torch.ones(2)),
                               Gumbel(torch.tensor([0.0, 1.0]), 2.0).log_prob(torch.ones(2))
                               .expand(3, 2))


def test_extreme_uniforms_give_finite_samples():
    d = Gumbel(torch.tensor(0.0), 1.0)
    assert d.icdf(torch.tensor([torch.finfo(torch.float32).tiny, 1 - 2.0**-23])).isfinite().all()
