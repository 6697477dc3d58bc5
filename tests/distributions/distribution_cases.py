"""Distributions that PyTorch, which recorded them, and flambeau both make."""

import json
import math
import warnings
from pathlib import Path


def cases(torch):
    """Name and function that makes the distribution, in single precision but for matrices."""
    d = torch.distributions
    t = lambda *values: torch.tensor(values)
    matrix = torch.tensor([[2.0, 0.3, -0.2], [0.3, 1.5, 0.4], [-0.2, 0.4, 1.2]],
                          dtype=torch.float64)
    loc = torch.tensor([0.5, -1.0, 0.25], dtype=torch.float64)
    tall = torch.tensor([[1.0, 0.2], [0.5, -0.3], [0.0, 0.8]], dtype=torch.float64)
    return {
        "Bernoulli": lambda: d.Bernoulli(t(0.1, 0.5, 0.9)),
        "Bernoulli logits": lambda: d.Bernoulli(logits=t(0.3, -2.0)),
        "Beta": lambda: d.Beta(t(0.5, 2.0), t(1.5, 3.0)),
        "Binomial": lambda: d.Binomial(5, t(0.2, 0.7)),
        "Categorical": lambda: d.Categorical(t(0.2, 0.3, 0.9)),
        "Categorical logits": lambda: d.Categorical(
            logits=torch.tensor([[0.2, 0.3, 0.9], [0.0, 0.0, 1.0]])),
        "Cauchy": lambda: d.Cauchy(t(0.0, 1.0), 2.0),
        "Chi2": lambda: d.Chi2(t(1.0, 5.0)),
        "ContinuousBernoulli": lambda: d.ContinuousBernoulli(t(0.1, 0.5, 0.8)),
        "Dirichlet": lambda: d.Dirichlet(t(0.5, 2.0, 3.0)),
        "Exponential": lambda: d.Exponential(t(0.5, 2.0)),
        "FisherSnedecor": lambda: d.FisherSnedecor(t(3.0, 5.0), t(5.0, 7.0)),
        "Gamma": lambda: d.Gamma(t(0.5, 3.0), 2.0),
        "GeneralizedPareto": lambda: d.GeneralizedPareto(
            t(0.0, 1.0, 2.0), t(1.0, 2.0, 3.0), t(0.2, 0.0, -0.5)),
        "Geometric": lambda: d.Geometric(t(0.2, 0.7)),
        "Gumbel": lambda: d.Gumbel(t(0.0, 1.0), 2.0),
        "HalfCauchy": lambda: d.HalfCauchy(t(1.0, 2.0)),
        "HalfNormal": lambda: d.HalfNormal(t(1.0, 2.0)),
        "Independent": lambda: d.Independent(d.Normal(torch.zeros(2, 3), 1.0), 1),
        "InverseGamma": lambda: d.InverseGamma(t(0.5, 3.0), 2.0),
        "Kumaraswamy": lambda: d.Kumaraswamy(t(0.5, 2.0), t(1.5, 3.0)),
        "LKJCholesky": lambda: d.LKJCholesky(3, t(0.5, 2.0)),
        "Laplace": lambda: d.Laplace(t(0.0, 1.0), 2.0),
        "LogNormal": lambda: d.LogNormal(t(0.0, 1.0), 0.5),
        "LogisticNormal": lambda: d.LogisticNormal(t(0.0, 1.0), t(0.5, 1.0)),
        "LowRankMultivariateNormal": lambda: d.LowRankMultivariateNormal(
            loc, tall, torch.ones(3, dtype=torch.float64)),
        "MixtureSameFamily": lambda: d.MixtureSameFamily(
            d.Categorical(torch.ones(3)), d.Normal(t(0.0, 1.0, 2.0), t(1.0, 2.0, 3.0))),
        "Multinomial": lambda: d.Multinomial(5, t(0.2, 0.3, 0.5)),
        "MultivariateNormal": lambda: d.MultivariateNormal(loc, covariance_matrix=matrix),
        "MultivariateNormal precision": lambda: d.MultivariateNormal(
            torch.stack([loc, -loc]), precision_matrix=matrix),
        "NegativeBinomial": lambda: d.NegativeBinomial(t(2.5, 3.0), t(0.2, 0.7)),
        "Normal": lambda: d.Normal(t(0.0, 1.0), torch.tensor([[2.0], [3.0]])),
        "OneHotCategorical": lambda: d.OneHotCategorical(t(0.2, 0.3, 0.9)),
        "OneHotCategoricalStraightThrough": lambda: d.OneHotCategoricalStraightThrough(
            t(0.2, 0.3, 0.9)),
        "Pareto": lambda: d.Pareto(t(1.0, 2.0), t(0.5, 3.0)),
        "Poisson": lambda: d.Poisson(t(0.5, 3.0)),
        "RelaxedBernoulli": lambda: d.RelaxedBernoulli(torch.tensor(0.5), t(0.2, 0.7)),
        "RelaxedOneHotCategorical": lambda: d.RelaxedOneHotCategorical(
            torch.tensor(0.5), t(0.2, 0.7)),
        "StudentT": lambda: d.StudentT(t(1.0, 1.5, 5.0), 1.0, 2.0),
        "TransformedDistribution": lambda: d.TransformedDistribution(
            d.Uniform(0.0, 1.0), [d.SigmoidTransform().inv, d.AffineTransform(2.0, -3.0)]),
        "Uniform": lambda: d.Uniform(t(0.0, 1.0), t(1.0, 4.0)),
        "VonMises": lambda: d.VonMises(t(0.0, 1.0), t(1.0, 5.0)),
        "Weibull": lambda: d.Weibull(t(1.0, 2.0), t(0.5, 3.0)),
        "Wishart": lambda: d.Wishart(
            torch.tensor(5.0, dtype=torch.float64), scale_tril=torch.linalg.cholesky(matrix)),
    }


def attempt(function):
    """What the function gives, as nested lists, or the name of its error."""
    try:
        result = function()
    except Exception as error:
        return type(error).__name__
    if hasattr(result, "tolist"):
        return result.detach().tolist()
    return [part.tolist() for part in result] if isinstance(result, tuple) else repr(result)


def facts(torch, make):
    """What is recorded of a distribution."""
    p = make()
    torch.manual_seed(1)
    sample = p.sample((3,))
    result = {
        "repr": repr(p), "support": repr(p.support), "sample": sample.tolist(),
        "then": torch.rand(1).item(),
    }
    value = sample[:2]
    for name in ("mean", "mode", "variance"):
        result[name] = attempt(lambda name=name: getattr(p, name))
    for name in ("log_prob", "cdf"):
        result[name] = attempt(lambda name=name: getattr(p, name)(value))
    result["icdf"] = attempt(lambda: p.icdf(torch.tensor(0.3)))
    result["entropy"] = attempt(p.entropy)
    result["enumerate"] = attempt(p.enumerate_support)
    wide = p.expand((2, *p.batch_shape))
    result["expanded"] = [repr(wide), list(wide.sample().shape),
                          attempt(lambda: wide.log_prob(value))]
    return result


def divergences(torch):
    """KL of every pair of the distributions for which it can be computed."""
    made = {name: make() for name, make in cases(torch).items()}
    result = {}
    for a, p in made.items():
        for b, q in made.items():
            value = attempt(lambda p=p, q=q: torch.distributions.kl_divergence(p, q))
            if not isinstance(value, str):
                result[f"{a} || {b}"] = value
    return result


def recorded():
    """What PyTorch gave: of every case its facts, and under "KL" the divergences."""
    return json.loads((Path(__file__).parents[1] / "data" / "distributions.json").read_text())


def close(mine, theirs, rel=3e-5, abs_=2e-6):
    """Nested lists of numbers, NaN equal to NaN."""
    if isinstance(theirs, list):
        return isinstance(mine, list) and len(mine) == len(theirs) and all(
            close(a, b, rel, abs_) for a, b in zip(mine, theirs, strict=True))
    if isinstance(theirs, str) or isinstance(mine, str):
        return mine == theirs
    if theirs != theirs:
        return mine != mine
    return math.isclose(mine, theirs, rel_tol=rel, abs_tol=abs_)


def check_recorded(torch, *names):
    """Assert that what is recorded of these cases holds."""
    for name in names:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mine = facts(torch, cases(torch)[name])
        wrong = {key: (mine[key], value) for key, value in recorded()[name].items()
                 if not close(mine[key], value)}
        assert not wrong, name


def check_cdf(torch, d):
    """Assert that the density is the derivative of the cdf, and icdf the inverse of the cdf."""
    torch.manual_seed(0)
    x = d.sample((4,)).detach().requires_grad_()
    slope, = torch.autograd.grad(d.cdf(x).sum(), x)
    torch.testing.assert_close(slope, d.log_prob(x).exp(), rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(d.icdf(d.cdf(x)), x, rtol=1e-2, atol=1e-3)


def check_moments(torch, d, n=40000, tolerance=5.0):
    """Assert that means and variances of samples are the distribution's, to 5 standard errors."""
    torch.manual_seed(0)
    x = d.sample((n,)).double()
    deviation = (x.mean(0) - d.mean) / (d.variance / n).sqrt()
    assert (deviation.abs() < tolerance).all(), deviation
    squares = (x - d.mean) ** 2
    error = (squares.var(0) / n).sqrt() + 1e-6 * d.variance
    deviation = (squares.mean(0) - d.variance) / error
    assert (deviation.abs() < tolerance).all(), deviation
