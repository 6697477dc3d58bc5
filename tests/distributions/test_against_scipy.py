"""Densities, distribution functions, entropies and moments against SciPy's."""

import numpy as np
import pytest

stats = pytest.importorskip("scipy.stats")

import flambeau as torch
from flambeau import distributions as d

POSITIVE = np.array([0.1, 0.7, 1.3, 2.5])
REAL = np.array([-1.5, -0.2, 0.4, 2.2])
UNIT = np.array([0.05, 0.3, 0.6, 0.95])
COUNTS = np.array([0.0, 1.0, 2.0, 4.0])


def double(*values):
    return (torch.tensor(value, dtype=torch.float64) for value in values)


CONTINUOUS = [
    (lambda: d.Normal(*double(0.3, 1.7)), stats.norm(0.3, 1.7), REAL),
    (lambda: d.Laplace(*double(0.3, 1.7)), stats.laplace(0.3, 1.7), REAL),
    (lambda: d.Cauchy(*double(0.3, 1.7)), stats.cauchy(0.3, 1.7), REAL),
    (lambda: d.Gumbel(*double(0.3, 1.7)), stats.gumbel_r(0.3, 1.7), REAL),
    (lambda: d.StudentT(*double(5.5, 0.3, 1.7)), stats.t(5.5, 0.3, 1.7), REAL),
    (lambda: d.VonMises(*double(0.3, 2.5)), stats.vonmises(2.5, 0.3), REAL),
    (lambda: d.Uniform(*double(-2.0, 3.0)), stats.uniform(-2, 5), REAL),
    (lambda: d.Exponential(*double(1.7)), stats.expon(scale=1 / 1.7), POSITIVE),
    (lambda: d.Gamma(*double(2.3, 1.7)), stats.gamma(2.3, scale=1 / 1.7), POSITIVE),
    (lambda: d.Chi2(*double(3.3)), stats.chi2(3.3), POSITIVE),
    (lambda: d.InverseGamma(*double(3.3, 1.7)), stats.invgamma(3.3, scale=1.7), POSITIVE),
    (lambda: d.FisherSnedecor(*double(5.3, 6.7)), stats.f(5.3, 6.7), POSITIVE),
    (lambda: d.HalfNormal(*double(1.7)), stats.halfnorm(scale=1.7), POSITIVE),
    (lambda: d.HalfCauchy(*double(1.7)), stats.halfcauchy(scale=1.7), POSITIVE),
    (lambda: d.LogNormal(*double(0.3, 0.8)), stats.lognorm(0.8, scale=np.exp(0.3)), POSITIVE),
    (lambda: d.Weibull(*double(1.7, 2.3)), stats.weibull_min(2.3, scale=1.7), POSITIVE),
    (lambda: d.Pareto(*double(1.5, 3.3)), stats.pareto(3.3, scale=1.5), POSITIVE + 1.5),
    (lambda: d.GeneralizedPareto(*double(0.0, 1.7, 0.3)), stats.genpareto(0.3, 0, 1.7), POSITIVE),
    (lambda: d.Beta(*double(2.3, 1.7)), stats.beta(2.3, 1.7), UNIT),
]
DISCRETE = [
    (lambda: d.Bernoulli(*double(0.3)), stats.bernoulli(0.3), COUNTS[:2]),
    (lambda: d.Binomial(*double(5.0, 0.3)), stats.binom(5, 0.3), COUNTS),
    (lambda: d.Geometric(*double(0.3)), stats.geom(0.3, loc=-1), COUNTS),
    (lambda: d.NegativeBinomial(*double(3.5, 0.3)), stats.nbinom(3.5, 0.7), COUNTS),
    (lambda: d.Poisson(*double(1.7)), stats.poisson(1.7), COUNTS),
]



def agree(mine, theirs, rtol=1e-9):
    np.testing.assert_allclose(mine.numpy(), theirs, rtol=rtol, atol=1e-12)


@pytest.mark.parametrize("make, theirs, values", CONTINUOUS + DISCRETE)
def test_log_prob(make, theirs, values):
    log = theirs.logpdf if hasattr(theirs.dist, "pdf") else theirs.logpmf
    rtol = 1e-6 if "VonMises" in repr(make()) else 1e-9   # its Bessel function is approximate
    agree(make().log_prob(torch.tensor(values)), log(values), rtol)


@pytest.mark.parametrize("make, theirs, values", CONTINUOUS + DISCRETE)
def test_moments_and_entropy(make, theirs, values):
    mine = make()
    if isinstance(mine, (d.Cauchy, d.HalfCauchy, d.VonMises)):
        return   # without moments, or with circular ones
    agree(mine.mean, theirs.mean(), 1e-8)
    agree(mine.variance, theirs.var(), 1e-8)
    try:
        entropy = mine.entropy()
    except NotImplementedError:
        return
    agree(entropy, theirs.entropy(), 1e-6)


@pytest.mark.parametrize("make, theirs, values", CONTINUOUS)
def test_cdf(make, theirs, values):
    try:
        cdf = make().cdf(torch.tensor(values))
    except NotImplementedError:
        return
    agree(cdf, theirs.cdf(values), 1e-8)


def test_multivariate():
    loc = np.array([0.3, -1.0])
    covariance = np.array([[2.0, 0.4], [0.4, 1.5]])
    x = np.array([[0.1, 0.2], [-1.0, 2.0]])
    mine = d.MultivariateNormal(torch.tensor(loc), torch.tensor(covariance))
    theirs = stats.multivariate_normal(loc, covariance)
    agree(mine.log_prob(torch.tensor(x)), theirs.logpdf(x))
    agree(mine.entropy(), theirs.entropy())
    factor = np.array([[1.0], [0.5]])
    mine = d.LowRankMultivariateNormal(
        torch.tensor(loc), torch.tensor(factor), torch.tensor([0.7, 1.2], dtype=torch.float64))
    theirs = stats.multivariate_normal(loc, factor @ factor.T + np.diag([0.7, 1.2]))
    agree(mine.log_prob(torch.tensor(x)), theirs.logpdf(x))
    mine = d.Dirichlet(torch.tensor([0.5, 2.0, 3.0], dtype=torch.float64))
    p = np.array([0.2, 0.3, 0.5])
    agree(mine.log_prob(torch.tensor(p)), stats.dirichlet([0.5, 2, 3]).logpdf(p))
    agree(mine.entropy(), stats.dirichlet([0.5, 2, 3]).entropy())
    mine = d.Wishart(torch.tensor(4.5, dtype=torch.float64), torch.tensor(covariance))
    theirs = stats.wishart(4.5, covariance)
    agree(mine.log_prob(torch.tensor(covariance * 2)), theirs.logpdf(covariance * 2))
    agree(mine.entropy(), theirs.entropy())
    mine = d.Multinomial(6, torch.tensor(p))
    counts = np.array([1.0, 2.0, 3.0])
    agree(mine.log_prob(torch.tensor(counts)), stats.multinomial(6, p).logpmf(counts))
    agree(mine.entropy(), stats.multinomial(6, p).entropy())
