"""The continuous Bernoulli distribution."""

import math

import pytest
from distribution_cases import check_cdf, check_moments, check_recorded

import flambeau as torch
from flambeau.distributions import ContinuousBernoulli


def test_recorded():
    check_recorded(torch, "ContinuousBernoulli")


def test_moments():
    check_moments(torch, ContinuousBernoulli(torch.tensor([0.1, 0.5, 0.8], dtype=torch.float64)))


def test_cdf():
    check_cdf(torch, ContinuousBernoulli(torch.tensor([0.1, 0.8])))
    d = ContinuousBernoulli(torch.tensor(0.3), validate_args=False)
    assert d.cdf(torch.tensor([-1.0, 0.0, 1.0, 2.0])).tolist() == [0.0, 0.0, 1.0, 1.0]


@pytest.mark.parametrize("p", [0.1, 0.8])
def test_density(p):
    """C p^x (1 - p)^(1 - x), with C = 2 artanh(1 - 2p) / (1 - 2p)."""
    x = torch.tensor([0.0, 0.3, 1.0], dtype=torch.float64)
    d = ContinuousBernoulli(torch.tensor(p, dtype=torch.float64))
    constant = 2 * math.atanh(1 - 2 * p) / (1 - 2 * p)
    torch.testing.assert_close(d.log_prob(x).exp(), constant * p**x * (1 - p) ** (1 - x))


def test_near_one_half():
    """Where the formulas are 0/0: the uniform distribution, and no jump at the limits."""
    near = torch.tensor([0.4989, 0.4991, 0.5, 0.5009, 0.5011], dtype=torch.float64)
    d = ContinuousBernoulli(near)
    torch.testing.assert_close(d.mean, 0.5 + (near - 0.5) / 3, rtol=0, atol=1e-8)
    torch.testing.assert_close(d.variance, torch.full_like(near, 1 / 12), rtol=0, atol=1e-6)
    torch.testing.assert_close(d.entropy(), torch.zeros_like(near), rtol=0, atol=1e-5)


def test_certain_probabilities_are_kept_off_0_and_1():
    eps = torch.finfo(torch.float32).eps
    for d in (ContinuousBernoulli(torch.tensor([0.0, 1.0])),
              ContinuousBernoulli(logits=torch.tensor([-200.0, 200.0]))):
        assert d.probs.tolist() == [eps, 1 - eps]
        assert d.mean.isfinite().all() and d.entropy().isfinite().all()
        assert d.sample((9,)).isfinite().all()


def test_bad_probabilities():
    with pytest.raises(ValueError, match="The parameter probs has invalid values"):
        ContinuousBernoulli(torch.tensor(1.5), validate_args=True)


def test_gradient():
    probs = torch.tensor([0.2, 0.4995, 0.9], dtype=torch.float64, requires_grad=True)
    x = torch.tensor([0.3, 0.6, 0.5], dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda p: ContinuousBernoulli(p).log_prob(x), probs)
    assert torch.autograd.gradcheck(lambda p: ContinuousBernoulli(p).icdf(x), probs)
