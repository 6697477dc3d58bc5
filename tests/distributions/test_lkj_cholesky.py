"""Cholesky factors of random correlation matrices."""

import math

import pytest
from distribution_cases import check_recorded

import flambeau as torch
from flambeau.distributions import LKJCholesky, constraints


def test_recorded():
    check_recorded(torch, "LKJCholesky")


def test_samples_are_factors_of_correlations():
    torch.manual_seed(0)
    d = LKJCholesky(4, torch.tensor([0.5, 2.0]))
    x = d.sample((100,))
    assert x.shape == (100, 2, 4, 4) and constraints.corr_cholesky.check(x).all()
    correlations = x @ x.mT
    assert (correlations.mean(0) - torch.eye(4)).abs().max() < 0.3


def test_two_dimensions():
    """The correlation r has the density (1 - r^2)^(eta - 1), up to a constant."""
    eta = torch.tensor(2.0, dtype=torch.float64)
    r = torch.tensor([0.0, 0.6], dtype=torch.float64)
    side = (1 - r**2).sqrt()
    factors = torch.stack([torch.stack([torch.ones(2).double(), torch.zeros(2).double()], -1),
                           torch.stack([r, side], -1)], -2)
    density = LKJCholesky(2, eta).log_prob(factors).exp()
    # In L the measure is dr, and det(dL -> dr) = 1; the integral of 1 - r^2 is 4/3.
    torch.testing.assert_close(density, (1 - r**2) * 3 / 4)


def test_concentration_one_is_uniform_over_correlations():
    torch.manual_seed(0)
    r = LKJCholesky(2, 1.0).sample((20000,))[:, 1, 0]
    assert abs(r.mean().item()) < 0.02 and abs(r.var().item() - 1 / 3) < 0.01


def test_expand_and_bad_arguments():
    wide = LKJCholesky(3, 2.0).expand((5,))
    assert wide.sample((2,)).shape == (2, 5, 3, 3) and wide.dim == 3
    assert math.isfinite(wide.log_prob(torch.eye(3))[0].item())
    with pytest.raises(ValueError, match="Expected dim to be an integer greater than or"):
        LKJCholesky(1)
    with pytest.raises(ValueError, match="Expected parameter concentration"):
        LKJCholesky(3, -1.0)
