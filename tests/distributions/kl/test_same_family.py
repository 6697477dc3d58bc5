"""Divergences between distributions of one kind."""

import pytest
from divergence_cases import by_integration, check_recorded_divergences

import flambeau as torch
from flambeau import distributions as d


def test_recorded():
    check_recorded_divergences(same=True)


def double(*values):
    return [torch.tensor(value, dtype=torch.float64) for value in values]


@pytest.mark.parametrize("kind, p, q, low, high", [
    (d.Normal, (0.5, 1.5), (-0.5, 1.0), -15, 15),
    (d.Laplace, (0.5, 1.5), (-0.5, 1.0), -50, 50),
    (d.Cauchy, (0.5, 1.5), (-0.5, 1.0), -3e4, 3e4),
    (d.Gumbel, (0.5, 1.5), (-0.5, 2.0), -8, 60),
    (d.Exponential, (1.5,), (0.5,), 0, 30),
    (d.Gamma, (2.5, 1.5), (1.5, 0.5), 0, 40),
    (d.Beta, (2.5, 1.5), (1.5, 2.5), 0, 1),
    (d.ContinuousBernoulli, (0.2,), (0.7,), 0, 1),
    (d.HalfNormal, (0.7,), (1.5,), 0, 10),
    (d.LogNormal, (0.3, 0.5), (0.0, 1.0), 0, 60),
    (d.Uniform, (0.0, 1.0), (-1.0, 3.0), 0, 1),
])
def test_integrals(kind, p, q, low, high):
    p, q = kind(*double(*p)), kind(*double(*q))
    n = 2000001 if kind is d.Cauchy else 20001
    torch.testing.assert_close(d.kl_divergence(p, q), by_integration(p, q, low, high, n),
                               rtol=2e-3, atol=1e-4)


@pytest.mark.parametrize("make", [
    lambda p: d.Bernoulli(p), lambda p: d.Binomial(4, p), lambda p: d.Geometric(p),
    lambda p: d.Categorical(torch.stack([p, 1 - p], -1)),
    lambda p: d.OneHotCategorical(torch.stack([p, 1 - p], -1)), lambda p: d.Poisson(p),
    lambda p: d.Pareto(1.0, p), lambda p: d.Dirichlet(torch.stack([p, 1 - p], -1)),
])
def test_zero_and_positive(make):
    p, q = make(torch.tensor([0.2, 0.6])), make(torch.tensor([0.5, 0.1]))
    torch.testing.assert_close(d.kl_divergence(p, p), torch.zeros(2), atol=1e-6, rtol=0)
    assert (d.kl_divergence(p, q) > 0).all()


@pytest.mark.parametrize("p, q, expected", [
    (d.Bernoulli(torch.tensor(0.5)), d.Bernoulli(torch.tensor(0.0)), float("inf")),
    (d.Bernoulli(torch.tensor(0.0)), d.Bernoulli(torch.tensor(0.0)), 0.0),
    (d.Categorical(torch.tensor([0.5, 0.5])), d.Categorical(torch.tensor([0.0, 1.0])),
     float("inf")),
    (d.Uniform(0.0, 2.0), d.Uniform(0.0, 1.0), float("inf")),
    (d.Pareto(1.0, 1.0), d.Pareto(2.0, 1.0), float("inf")),
])
def test_mass_where_the_other_has_none(p, q, expected):
    assert d.kl_divergence(p, q).item() == expected


def test_counts_that_differ():
    p, q = d.Binomial(4, torch.tensor(0.3)), d.Binomial(3, torch.tensor(0.3))
    assert d.kl_divergence(p, q).item() == float("inf")
    with pytest.raises(NotImplementedError, match=r"KL between Binomials where q.total_count > p."):
        d.kl_divergence(q, p)
