"""The Cauchy distribution."""

import math

import pytest
from distribution_cases import check_cdf, check_recorded

import flambeau as torch
from flambeau.distributions import Cauchy, StudentT


def test_recorded():
    check_recorded(torch, "Cauchy")


def test_cdf():
    check_cdf(torch, Cauchy(torch.tensor([0.0, 1.0]), 2.0))
    d = Cauchy(1.0, 2.0)
    torch.testing.assert_close(d.icdf(torch.tensor([0.25, 0.5, 0.75])),
                               torch.tensor([-1.0, 1.0, 3.0]))


def test_is_a_student_distribution_of_one_degree():
    x = torch.tensor([-3.0, 0.0, 100.0], dtype=torch.float64)
    loc, scale = torch.tensor([0.5, 2.0], dtype=torch.float64)
    torch.testing.assert_close(Cauchy(loc, scale).log_prob(x),
                               StudentT(1.0, loc, scale).log_prob(x))


def test_no_moments():
    d = Cauchy(torch.zeros(2), 1.0)
    assert d.mean.isnan().all() and d.variance.isinf().all()
    assert d.mode.tolist() == [0.0, 0.0]
    assert d.entropy()[0].item() == pytest.approx(math.log(4 * math.pi))


def test_median_of_samples():
    torch.manual_seed(0)
    assert abs(Cauchy(3.0, 1.0).sample((20001,)).median().item() - 3.0) < 0.05
