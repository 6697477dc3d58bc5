"""The generalised Pareto distribution."""

import math

import pytest
from distribution_cases import check_cdf, check_recorded

import flambeau as torch
from flambeau.distributions import Exponential, GeneralizedPareto, Pareto, Uniform

X = torch.tensor([1.1, 1.5, 1.9])


def test_recorded():
    check_recorded(torch, "GeneralizedPareto")


def test_cdf():
    check_cdf(torch, GeneralizedPareto(
        torch.tensor([0.0, 1.0, 2.0]), torch.tensor([1.0, 2.0, 3.0]),
        torch.tensor([0.2, 0.0, -0.5])))


@pytest.mark.parametrize("concentration, other", [
    (0.0, lambda x: Exponential(1.0).log_prob(x - 1)),
    (1.0, lambda x: Pareto(1.0, 1.0).log_prob(x)),
    (-1.0, lambda x: Uniform(1.0, 2.0).log_prob(x)),
])
def test_special_cases(concentration, other):
    torch.testing.assert_close(GeneralizedPareto(1.0, 1.0, concentration).log_prob(X), other(X))


def test_moments():
    d = GeneralizedPareto(torch.zeros(3), 1.0, torch.tensor([0.25, 0.5, 1.0]))
    assert d.mean.tolist() == pytest.approx([4 / 3, 2.0, math.nan], nan_ok=True)
    assert d.variance.tolist() == pytest.approx(
        [1 / (0.5625 * 0.5), math.nan, math.nan], nan_ok=True)
    assert d.entropy().tolist() == [1.25, 1.5, 2.0] and d.mode.tolist() == [0.0] * 3


def test_survival():
    d = GeneralizedPareto(1.0, 2.0, 0.5)
    x = torch.tensor([1.0, 3.0])
    torch.testing.assert_close(d.log_survival_function(x).exp(), torch.tensor([1.0, 4 / 9]))
    torch.testing.assert_close(d.log_cdf(x).exp(), d.cdf(x))


def test_support_ends_if_the_concentration_is_negative():
    d = GeneralizedPareto(0.0, 1.0, torch.tensor([-0.5, 0.5]))
    assert d.support.upper_bound.tolist() == [2.0, math.inf]
    with pytest.raises(ValueError, match="Expected value argument"):
        d.log_prob(torch.tensor([3.0, 3.0]))
