"""Exponential families: entropies and divergences follow from the log-normaliser."""

import pytest

import flambeau as torch
from flambeau.distributions import (
    Bernoulli,
    Beta,
    Dirichlet,
    Exponential,
    ExponentialFamily,
    Gamma,
    Normal,
    Poisson,
    kl_divergence,
)
from flambeau.distributions.kl import _dispatch_kl

of_families = _dispatch_kl(ExponentialFamily, ExponentialFamily)

PARAMETERS = [
    (Normal, [(0.5, -1.0), (2.0, 0.3)], [(0.0, 1.0), (1.0, 1.0)]),
    (Gamma, [(2.0, 0.7), (3.0, 1.0)], [(1.0, 2.0), (0.5, 2.0)]),
    (Exponential, [(0.7, 2.0)], [(1.5, 1.0)]),
    (Bernoulli, [(0.2, 0.6)], [(0.5, 0.1)]),
    (Beta, [(0.5, 2.0), (1.5, 3.0)], [(2.0, 2.0), (1.0, 0.5)]),
    (Poisson, [(0.5, 3.0)], [(2.0, 2.0)]),
]


def made(kind, parameters):
    return kind(*(torch.tensor(p, dtype=torch.float64) for p in parameters))


@pytest.mark.parametrize("kind, first, second", PARAMETERS[:-2])
def test_entropy(kind, first, second):
    d = made(kind, first)
    torch.testing.assert_close(ExponentialFamily.entropy(d), d.entropy())


def test_entropy_without_the_carrier_measure():
    with pytest.raises(NotImplementedError):
        ExponentialFamily.entropy(Beta(1.0, 2.0))


@pytest.mark.parametrize("kind, first, second", PARAMETERS)
def test_divergence(kind, first, second):
    p, q = made(kind, first), made(kind, second)
    torch.testing.assert_close(of_families(p, q), kl_divergence(p, q))
    torch.testing.assert_close(of_families(p, p), torch.zeros(2, dtype=torch.float64))


def test_divergence_of_vectors():
    p, q = (Dirichlet(torch.tensor(c, dtype=torch.float64)) for c in ([0.5, 2, 3], [1, 1, 4]))
    torch.testing.assert_close(of_families(p, q), kl_divergence(p, q))


def test_entropy_carries_gradients():
    scale = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    d = Normal(torch.tensor(0.0, dtype=torch.float64), scale)
    assert not ExponentialFamily.entropy(d).isnan()
    slope, = torch.autograd.grad(d.entropy(), scale)
    assert slope.item() == 0.5


def test_families_that_differ():
    with pytest.raises(NotImplementedError, match="between different exponential families cannot"):
        kl_divergence(Bernoulli(0.5), Gamma(1.0, 1.0))
