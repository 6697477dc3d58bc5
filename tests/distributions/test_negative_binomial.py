"""The negative binomial distribution."""

import pytest
from distribution_cases import check_moments, check_recorded

import flambeau as torch
from flambeau.distributions import Geometric, NegativeBinomial


def test_recorded():
    check_recorded(torch, "NegativeBinomial")


def test_moments():
    check_moments(torch, NegativeBinomial(
        torch.tensor([2.5, 3.0]).double(), torch.tensor([0.2, 0.7]).double()))


def test_one_failure_is_a_geometric_distribution():
    k = torch.arange(10.0, dtype=torch.float64)
    p = torch.tensor(0.3, dtype=torch.float64)
    torch.testing.assert_close(NegativeBinomial(1, p).log_prob(k), Geometric(1 - p).log_prob(k))


def test_probabilities_sum_to_one():
    k = torch.arange(400.0, dtype=torch.float64)
    d = NegativeBinomial(2.5, torch.tensor(0.6, dtype=torch.float64))
    assert d.log_prob(k).exp().sum().item() == pytest.approx(1.0)
    assert (d.log_prob(k).exp() * k).sum().item() == pytest.approx(d.mean.item())
    assert d.mode.item() == d.log_prob(k).argmax().item()


def test_no_failures_to_wait_for():
    d = NegativeBinomial(0, torch.tensor(0.5))
    assert d.log_prob(torch.tensor([0.0, 1.0])).tolist() == [0.0, float("-inf")]


def test_bad_arguments():
    with pytest.raises(ValueError, match=r"HalfOpenInterval\(lower_bound=0.0, upper_bound=1.0\)"):
        NegativeBinomial(1, torch.tensor(1.0))
    with pytest.raises(ValueError, match="Expected parameter total_count"):
        NegativeBinomial(torch.tensor(-1.0), torch.tensor(0.5))
    with pytest.raises(ValueError, match="support"):
        NegativeBinomial(1, torch.tensor(0.5)).log_prob(torch.tensor(0.5))
