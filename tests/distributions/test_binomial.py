"""The binomial distribution."""

import math

import pytest
from distribution_cases import check_moments, check_recorded

import flambeau as torch
from flambeau.distributions import Bernoulli, Binomial


def test_recorded():
    check_recorded(torch, "Binomial")


def test_moments():
    check_moments(torch, Binomial(torch.tensor([5.0, 100.0]), torch.tensor([0.2, 0.7])))


def test_probabilities():
    d = Binomial(4, torch.tensor(0.3, dtype=torch.float64))
    values = d.enumerate_support()
    assert values.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    expected = [math.comb(4, k) * 0.3**k * 0.7 ** (4 - k) for k in range(5)]
    torch.testing.assert_close(d.log_prob(values).exp(),
                               torch.tensor(expected, dtype=torch.float64))
    assert d.entropy().item() == pytest.approx(-sum(p * math.log(p) for p in expected))


@pytest.mark.parametrize("logit", [-40.0, -1.5, 0.0, 0.5, 40.0])
def test_slope_by_the_logits(logit):
    """k - n p, also at the logit 0, where a maximum of two has no slope."""
    x = torch.tensor(logit, dtype=torch.float64, requires_grad=True)
    slope, = torch.autograd.grad(Binomial(5, logits=x).log_prob(torch.tensor(3.0)), x)
    assert slope.item() == pytest.approx(3 - 5 / (1 + math.exp(-logit)))


def test_one_trial_is_a_bernoulli_distribution():
    probs = torch.tensor([0.2, 0.9], dtype=torch.float64)
    value = torch.tensor([1.0, 0.0], dtype=torch.float64)
    torch.testing.assert_close(Binomial(1, probs).log_prob(value),
                               Bernoulli(probs).log_prob(value))


def test_counts_that_differ():
    d = Binomial(torch.tensor([1, 2]), torch.tensor(0.5))
    assert d.total_count.dtype == torch.float32
    assert (d.sample((20,)) <= d.total_count).all()
    with pytest.raises(NotImplementedError, match="Inhomogeneous total count not supported by `en"):
        d.enumerate_support()
    with pytest.raises(NotImplementedError, match="Inhomogeneous total count not supported by `en"):
        d.entropy()


def test_bad_arguments():
    with pytest.raises(ValueError, match=r"IntegerGreaterThan\(lower_bound=0\)"):
        Binomial(-1, torch.tensor(0.5))
    with pytest.raises(ValueError, match=r"IntegerInterval\(lower_bound=0, upper_bound=3"):
        Binomial(3, torch.tensor(0.5)).log_prob(torch.tensor(4.0))
