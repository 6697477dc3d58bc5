"""Bernoulli variables relaxed to numbers between 0 and 1."""

import pytest
from distribution_cases import check_recorded

import flambeau as torch
from flambeau.distributions import Bernoulli, RelaxedBernoulli
from flambeau.distributions.relaxed_bernoulli import LogitRelaxedBernoulli

PROBS = torch.tensor([0.2, 0.7], dtype=torch.float64)
T = torch.tensor(0.8, dtype=torch.float64)


def test_recorded():
    check_recorded(torch, "RelaxedBernoulli")


def test_logits_are_logistic():
    """A logistic variable with the log-odds as its mean, divided by the temperature."""
    x = torch.tensor([-1.0, 2.0], dtype=torch.float64)
    z = T * x - torch.logit(PROBS)
    expected = T.log() - z - 2 * torch.log1p((-z).exp())
    torch.testing.assert_close(LogitRelaxedBernoulli(T, PROBS).log_prob(x), expected)


def test_is_the_sigmoid_of_its_logit():
    x = torch.tensor([0.3, 0.9], dtype=torch.float64)
    inner = LogitRelaxedBernoulli(T, PROBS).log_prob(torch.logit(x))
    torch.testing.assert_close(RelaxedBernoulli(T, PROBS).log_prob(x), inner - (x * (1 - x)).log())


def test_low_temperatures_give_bernoulli_variables():
    torch.manual_seed(0)
    x = RelaxedBernoulli(torch.tensor(1e-3), PROBS.float()).sample((5000,))
    torch.testing.assert_close(x.mean(0), Bernoulli(PROBS.float()).mean, atol=0.03, rtol=0)
    assert ((x < 1e-3) | (x > 1 - 1e-3)).float().mean() > 0.99


def test_attributes_and_expand():
    d = RelaxedBernoulli(T, logits=torch.zeros(2))
    assert d.temperature is T and d.probs.tolist() == [0.5, 0.5] and d.logits.tolist() == [0, 0]
    wide = d.expand((3, 2))
    assert wide.rsample((4,)).shape == (4, 3, 2) and wide.temperature is T
    assert LogitRelaxedBernoulli(T, PROBS).param_shape == (2,)
    with pytest.raises(ValueError, match="Either `probs` or `logits` must be specified"):
        RelaxedBernoulli(T)


def test_rsample_gradient():
    logits = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    x = RelaxedBernoulli(T, logits=logits).rsample()
    slope, = torch.autograd.grad(x.sum(), logits)
    torch.testing.assert_close(slope, (x * (1 - x) / T).detach())
