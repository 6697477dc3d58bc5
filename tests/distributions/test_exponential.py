"""The exponential distribution."""

import math

import pytest
from distribution_cases import check_cdf, check_moments, check_recorded

import flambeau as torch
from flambeau.distributions import Exponential


def test_recorded():
    check_recorded(torch, "Exponential")


def test_moments_and_cdf():
    check_moments(torch, Exponential(torch.tensor([0.5, 2.0], dtype=torch.float64)))
    check_cdf(torch, Exponential(torch.tensor([0.5, 2.0])))


def test_has_no_memory():
    d = Exponential(torch.tensor(1.7, dtype=torch.float64))
    survival = lambda x: 1 - d.cdf(torch.tensor(x, dtype=torch.float64))
    torch.testing.assert_close(survival(1.1) * survival(0.4), survival(1.5))


def test_closed_forms():
    d = Exponential(2.0)
    assert d.icdf(torch.tensor(0.5)).item() == pytest.approx(math.log(2) / 2)
    assert d.entropy().item() == pytest.approx(1 - math.log(2))
    assert d.mode.item() == 0.0 and d.stddev.item() == d.mean.item() == 0.5


def test_rsample_scales_with_the_rate():
    rate = torch.tensor(2.0, requires_grad=True)
    sample = Exponential(rate).rsample((5,))
    slope, = torch.autograd.grad(sample.sum(), rate)
    torch.testing.assert_close(slope, -(sample / rate).sum().detach())


def test_bad_values():
    with pytest.raises(ValueError, match=r"support \(GreaterThanEq\(lower_bound=0.0\)\)"):
        Exponential(1.0).log_prob(torch.tensor(-0.5))
    with pytest.raises(ValueError, match="Expected parameter rate"):
        Exponential(0.0)
