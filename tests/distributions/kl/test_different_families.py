"""Divergences between distributions of two kinds."""

import pytest
from divergence_cases import by_integration, check_recorded_divergences

import flambeau as torch
from flambeau import distributions as d


def test_recorded():
    check_recorded_divergences(same=False)


def double(kind, *values):
    return kind(*(torch.tensor(value, dtype=torch.float64) for value in values))


NORMAL = double(d.Normal, 0.3, 1.5)
EXPONENTIAL = double(d.Exponential, 0.7)
GAMMA = double(d.Gamma, 2.5, 1.5)
GUMBEL = double(d.Gumbel, 0.5, 2.0)
BETA = double(d.Beta, 2.5, 1.5)
UNIFORM = double(d.Uniform, 0.2, 0.9)
CB = double(d.ContinuousBernoulli, 0.3)
PARETO = double(d.Pareto, 0.1, 1.5)
WIDE = double(d.Uniform, -1.0, 2.0)


@pytest.mark.parametrize("p, q, low, high", [
    (BETA, CB, 0, 1), (BETA, EXPONENTIAL, 0, 1), (BETA, GAMMA, 0, 1), (BETA, NORMAL, 0, 1),
    (BETA, WIDE, 0, 1), (CB, EXPONENTIAL, 0, 1), (CB, NORMAL, 0, 1), (CB, WIDE, 0, 1),
    (EXPONENTIAL, GAMMA, 0, 50), (EXPONENTIAL, GUMBEL, 0, 50), (EXPONENTIAL, NORMAL, 0, 50),
    (GAMMA, EXPONENTIAL, 0, 50), (GAMMA, GUMBEL, 0, 50), (GAMMA, NORMAL, 0, 50),
    (NORMAL, GUMBEL, -12, 12), (NORMAL, double(d.Laplace, 0.5, 2.0), -12, 12),
    (GUMBEL, NORMAL, -8, 80), (double(d.Laplace, 0.5, 0.7), NORMAL, -20, 20),
    (UNIFORM, BETA, 0.2, 0.9), (UNIFORM, CB, 0.2, 0.9), (UNIFORM, EXPONENTIAL, 0.2, 0.9),
    (UNIFORM, GAMMA, 0.2, 0.9), (UNIFORM, GUMBEL, 0.2, 0.9), (UNIFORM, NORMAL, 0.2, 0.9),
    (UNIFORM, PARETO, 0.2, 0.9), (double(d.Pareto, 0.1, 8.0), EXPONENTIAL, 0.1, 20),
    (double(d.Pareto, 0.1, 8.0), GAMMA, 0.1, 20), (double(d.Pareto, 0.1, 8.0), NORMAL, 0.1, 20),
], ids=lambda d: type(d).__name__)
def test_integrals(p, q, low, high):
    torch.testing.assert_close(d.kl_divergence(p, q), by_integration(p, q, low, high, 200001),
                               rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("p, q", [
    (BETA, PARETO), (CB, PARETO), (EXPONENTIAL, BETA), (EXPONENTIAL, UNIFORM), (GAMMA, PARETO),
    (GUMBEL, EXPONENTIAL), (NORMAL, GAMMA), (double(d.Laplace, 0.0, 1.0), BETA),
    (PARETO, UNIFORM), (NORMAL, UNIFORM), (UNIFORM, double(d.Pareto, 0.5, 1.0)),
    (double(d.Poisson, 1.0), double(d.Bernoulli, 0.5)), (BETA, UNIFORM), (CB, UNIFORM),
    (WIDE, BETA), (WIDE, GAMMA), (PARETO, NORMAL),
], ids=lambda d: type(d).__name__)
def test_mass_where_the_other_has_none(p, q):
    assert d.kl_divergence(p, q).item() == float("inf")


def test_bernoulli_and_poisson():
    p, q = double(d.Bernoulli, 0.3), double(d.Poisson, 0.8)
    k = torch.tensor([0.0, 1.0], dtype=torch.float64)
    expected = (p.log_prob(k).exp() * (p.log_prob(k) - q.log_prob(k))).sum()
    torch.testing.assert_close(d.kl_divergence(p, q), expected)
