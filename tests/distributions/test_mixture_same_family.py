"""Mixtures of distributions of one family."""

import pytest
from distribution_cases import check_moments, check_recorded

import flambeau as torch
from flambeau.distributions import (
    Categorical,
    Independent,
    MixtureSameFamily,
    Normal,
    Poisson,
    constraints,
)


def mixture():
    weights = torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64)
    loc = torch.tensor([-2.0, 0.0, 3.0], dtype=torch.float64)
    scale = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
    return weights, Normal(loc, scale), MixtureSameFamily(Categorical(weights), Normal(loc, scale))


def test_recorded():
    check_recorded(torch, "MixtureSameFamily")


def test_moments():
    check_moments(torch, mixture()[2])


def test_weighted_sums():
    weights, parts, d = mixture()
    x = torch.linspace(-3, 3, 7, dtype=torch.float64)
    density = (parts.log_prob(x[:, None]).exp() * weights).sum(-1)
    torch.testing.assert_close(d.log_prob(x).exp(), density)
    torch.testing.assert_close(d.cdf(x), (parts.cdf(x[:, None]) * weights).sum(-1))
    torch.testing.assert_close(d.mean, (weights * parts.mean).sum())


def test_events_of_several_dimensions():
    components = Independent(Normal(torch.zeros(2, 4, 3), 1.0), 1)
    d = MixtureSameFamily(Categorical(torch.ones(2, 4)), components)
    assert (d.batch_shape, d.event_shape) == ((2,), (3,))
    assert d.sample((5,)).shape == (5, 2, 3)
    assert d.expand((6, 2)).log_prob(torch.zeros(3)).shape == (6, 2)
    assert isinstance(d.support, constraints.MixtureSameFamilyConstraint)


def test_discrete_components():
    d = MixtureSameFamily(Categorical(torch.ones(2)), Poisson(torch.tensor([1.0, 5.0])))
    k = torch.arange(60.0)
    assert d.log_prob(k).exp().sum().item() == pytest.approx(1.0, abs=1e-5)
    assert d.support.is_discrete and not d.has_rsample


def test_gradient():
    logits = torch.tensor([0.1, 0.5], dtype=torch.float64, requires_grad=True)
    loc = torch.tensor([-1.0, 2.0], dtype=torch.float64, requires_grad=True)
    x = torch.tensor([0.3, 1.0], dtype=torch.float64)
    assert torch.autograd.gradcheck(
        lambda w, m: MixtureSameFamily(Categorical(logits=w), Normal(m, 1.0)).log_prob(x),
        (logits, loc))


@pytest.mark.parametrize("mix, components, message", [
    (Normal(0.0, 1.0), Normal(0.0, 1.0), "The Mixture distribution needs to be an  instance of"),
    (Categorical(torch.ones(3)), 3, "The Component distribution needs to be an instance of"),
    (Categorical(torch.ones(3)), Normal(torch.zeros(2), 1.0), "`mixture_distribution component`"),
    (Categorical(torch.ones(2, 3)), Normal(torch.zeros(4, 3), 1.0), "is not compatible with"),
])
def test_bad_arguments(mix, components, message):
    with pytest.raises(ValueError, match=message):
        MixtureSameFamily(mix, components)
