"""Probabilities or logits: one is given, the other one is computed when it is asked for."""

import pytest

import flambeau as torch
from flambeau.distributions import (
    Bernoulli,
    Binomial,
    Categorical,
    ContinuousBernoulli,
    Geometric,
    NegativeBinomial,
)

BINARY = [Bernoulli, ContinuousBernoulli, Geometric,
          lambda **p: Binomial(3, **p), lambda **p: NegativeBinomial(3, **p)]


@pytest.mark.parametrize("make", [*BINARY, Categorical])
def test_exactly_one(make):
    message = "Either `probs` or `logits` must be specified, but not both."
    with pytest.raises(ValueError, match=message):
        make()
    with pytest.raises(ValueError, match=message):
        make(probs=torch.ones(2) / 2, logits=torch.zeros(2))


@pytest.mark.parametrize("make", BINARY)
def test_logits_are_log_odds(make):
    probs = torch.tensor([0.2, 0.7], dtype=torch.float64)
    torch.testing.assert_close(make(probs=probs).logits, torch.logit(probs))
    torch.testing.assert_close(make(logits=torch.logit(probs)).probs, probs)


def test_logits_are_normalised_log_probabilities():
    weights = torch.tensor([1.0, 3.0])
    torch.testing.assert_close(Categorical(weights).logits, (weights / 4).log())
    torch.testing.assert_close(Categorical(logits=weights.log() + 5).probs, weights / 4)
    assert Categorical(torch.ones(2, 3)).param_shape == (2, 3)


@pytest.mark.parametrize("make", BINARY)
def test_the_other_parameter_carries_gradients(make):
    logits = torch.tensor([0.5, -1.0], requires_grad=True)
    with torch.no_grad():
        probs = make(logits=logits).probs    # made with gradients, whenever that is
    slope, = torch.autograd.grad(probs.sum(), logits)
    torch.testing.assert_close(slope, (probs * (1 - probs)).detach())


def test_what_was_given_is_in_the_repr():
    d = Bernoulli(logits=torch.zeros(2))
    assert repr(d) == "Bernoulli(logits: torch.Size([2]))"
    d.probs
    assert repr(d) == "Bernoulli(probs: torch.Size([2]), logits: torch.Size([2]))"


def test_certain_probabilities_have_finite_logits():
    eps = torch.finfo(torch.float32).eps
    logits = Bernoulli(torch.tensor([0.0, 1.0])).logits
    torch.testing.assert_close(logits, torch.logit(torch.tensor([eps, 1 - eps])))
