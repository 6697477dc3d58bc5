"""The half-Cauchy distribution."""

import math

from distribution_cases import check_cdf, check_recorded

import flambeau as torch
from flambeau.distributions import HalfCauchy


def test_recorded():
    check_recorded(torch, "HalfCauchy")


def test_cdf():
    check_cdf(torch, HalfCauchy(torch.tensor([1.0, 2.0])))
    assert math.isclose(HalfCauchy(3.0).icdf(torch.tensor(0.5)).item(), 3.0, rel_tol=1e-6)


def test_no_moments():
    d = HalfCauchy(torch.tensor([1.0, 2.0], dtype=torch.float64))
    assert d.mean.tolist() == [math.inf] * 2 and d.mean.dtype == torch.float64
    assert d.variance.tolist() == [math.inf] * 2


def test_values_may_be_numbers_when_unchecked():
    d = HalfCauchy(2.0, validate_args=False)
    assert math.isclose(d.log_prob(2.0).item(), math.log(1 / (2 * math.pi)), rel_tol=1e-6)
