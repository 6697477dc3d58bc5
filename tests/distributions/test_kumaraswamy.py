"""The Kumaraswamy distribution."""

import pytest
from distribution_cases import check_cdf, check_moments, check_recorded

import flambeau as torch
from flambeau.distributions import Beta, Kumaraswamy


def test_recorded():
    check_recorded(torch, "Kumaraswamy")


def test_moments_and_cdf():
    check_moments(torch, Kumaraswamy(torch.tensor([0.5, 2.0], dtype=torch.float64), 3.0))
    check_cdf(torch, Kumaraswamy(torch.tensor([0.5, 2.0]), torch.tensor([1.5, 3.0])))


def test_closed_form():
    """P(x < z) = 1 - (1 - z^a)^b."""
    z = torch.tensor([0.1, 0.5, 0.9], dtype=torch.float64)
    a, b = torch.tensor([2.0, 3.0], dtype=torch.float64)
    torch.testing.assert_close(Kumaraswamy(a, b).cdf(z), 1 - (1 - z**a) ** b,
                               rtol=1e-6, atol=1e-9)


def test_is_a_beta_distribution_if_a_parameter_is_1():
    z = torch.tensor([0.1, 0.5, 0.9], dtype=torch.float64)
    three = torch.tensor(3.0, dtype=torch.float64)
    for a, b in ((1.0, three), (three, 1.0)):
        d, other = Kumaraswamy(a, b), Beta(a, b)
        torch.testing.assert_close(d.log_prob(z), other.log_prob(z), rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(d.mean, other.mean)
        torch.testing.assert_close(d.variance, other.variance)
        torch.testing.assert_close(d.entropy(), other.entropy(), rtol=1e-6, atol=1e-6)


def test_mode():
    d = Kumaraswamy(torch.tensor([1.0, 0.5]), torch.tensor([0.5, 3.0]))
    assert d.mode.isnan().all()    # of a density that is largest at an end


def test_bad_arguments():
    with pytest.raises(ValueError, match="Expected parameter concentration1"):
        Kumaraswamy(0.0, 1.0)


def test_expand():
    wide = Kumaraswamy(torch.tensor([0.5, 2.0]), 3.0).expand((4, 2))
    assert wide.concentration0.shape == (4, 2) and wide.sample().shape == (4, 2)
