"""The chi-squared distribution."""

import pytest
from distribution_cases import check_moments, check_recorded

import flambeau as torch
from flambeau.distributions import Chi2, Exponential, Gamma


def test_recorded():
    check_recorded(torch, "Chi2")


def test_moments():
    d = Chi2(torch.tensor([1.0, 5.0], dtype=torch.float64))
    check_moments(torch, d)
    assert d.mean.tolist() == [1.0, 5.0] and d.variance.tolist() == [2.0, 10.0]


def test_is_a_gamma_distribution():
    d = Chi2(torch.tensor(3.0))
    assert isinstance(d, Gamma) and d.df.item() == 3.0
    assert (d.concentration.item(), d.rate.item()) == (1.5, 0.5)
    assert repr(d) == "Chi2()"


def test_two_degrees_are_exponential():
    x = torch.tensor([0.1, 2.0, 9.0], dtype=torch.float64)
    two = torch.tensor(2.0, dtype=torch.float64)
    torch.testing.assert_close(Chi2(two).log_prob(x), Exponential(1 / two).log_prob(x))
    torch.testing.assert_close(Chi2(two).cdf(x), 1 - (-x / 2).exp())


def test_expand_and_bad_arguments():
    wide = Chi2(torch.tensor([2.0, 4.0])).expand((3, 2))
    assert type(wide) is Chi2 and wide.df.shape == (3, 2)
    with pytest.raises(ValueError, match="Expected parameter df"):
        Chi2(torch.tensor(-1.0))
