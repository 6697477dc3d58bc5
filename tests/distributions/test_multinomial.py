"""The multinomial distribution."""

import itertools
import math

import pytest
from distribution_cases import check_moments, check_recorded

import flambeau as torch
from flambeau.distributions import Binomial, Multinomial

PROBS = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64)


def outcomes(n):
    return torch.tensor([k for k in itertools.product(range(n + 1), repeat=3) if sum(k) == n],
                        dtype=torch.float64)


def test_recorded():
    check_recorded(torch, "Multinomial")


def test_moments():
    check_moments(torch, Multinomial(5, PROBS), 20000)


def test_probabilities():
    d = Multinomial(4, PROBS)
    log_p = d.log_prob(outcomes(4))
    assert log_p.exp().sum().item() == pytest.approx(1.0)
    assert d.entropy().item() == pytest.approx(-(log_p.exp() * log_p).sum().item(), rel=1e-6)
    one = d.log_prob(torch.tensor([1.0, 1.0, 2.0], dtype=torch.float64)).exp()
    assert one.item() == pytest.approx(12 * 0.2 * 0.3 * 0.25)


def test_two_outcomes_are_a_binomial_distribution():
    k = torch.arange(6.0)
    both = Multinomial(5, torch.tensor([0.3, 0.7])).log_prob(torch.stack([k, 5 - k], -1))
    torch.testing.assert_close(both, Binomial(5, torch.tensor(0.3)).log_prob(k))


def test_slope_of_the_entropy():
    """By central differences; one of the probabilities is 1/2, whose logit is 0."""
    probs = PROBS.clone().requires_grad_()
    slope, = torch.autograd.grad(Multinomial(5, probs).entropy(), probs)
    step = 1e-5 * torch.eye(3, dtype=torch.float64)
    expected = [(Multinomial(5, PROBS + s).entropy() - Multinomial(5, PROBS - s).entropy()) / 2e-5
                for s in step]
    torch.testing.assert_close(slope, torch.stack(expected), rtol=1e-4, atol=1e-4)


def test_dtype_of_the_entropy():
    """The number of draws makes halves to single precision, as the sum with a default float."""
    assert Multinomial(5, PROBS.half()).entropy().dtype == torch.float32
    assert Multinomial(5, PROBS).entropy().dtype == torch.float64


def test_samples():
    torch.manual_seed(0)
    x = Multinomial(7, logits=torch.zeros(2, 3)).sample((4, 5))
    assert x.shape == (4, 5, 2, 3) and (x.sum(-1) == 7).all()
    assert Multinomial(7, torch.ones(3)).expand((2,)).sample().shape == (2, 3)


def test_bad_arguments():
    with pytest.raises(NotImplementedError, match="inhomogeneous total_count is not supported"):
        Multinomial(torch.tensor([1, 2]), PROBS)
    with pytest.raises(ValueError, match=r"support \(Multinomial\(\)\)"):
        Multinomial(2, PROBS).log_prob(torch.tensor([1.0, 1.0, 1.0]))
    assert math.isfinite(Multinomial(2, PROBS).log_prob(torch.tensor([1.0, 1.0, 0.0])).item())
