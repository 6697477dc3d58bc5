"""Distributions against recorded values of PyTorch: samples, densities, moments, divergences."""

import json
import math
from pathlib import Path

import pytest
from distribution_cases import attempt, cases, facts

import flambeau as torch
from flambeau.distributions import (
    Categorical,
    Distribution,
    ExponentialFamily,
    Gamma,
    Independent,
    Normal,
    Uniform,
    constraints,
    kl_divergence,
    register_kl,
)

RECORDED = json.loads((Path(__file__).parents[1] / "data" / "distributions.json").read_text())
CASES = cases(torch)
KL = RECORDED.pop("KL")
# Here PyTorch puts infinity into the wrong rows of a broadcast result.
KL.pop("Pareto || Normal")


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


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", RECORDED)
def test_facts(name):
    mine = facts(torch, CASES[name])
    wrong = {key: (mine[key], value) for key, value in RECORDED[name].items()
             if not close(mine[key], value)}
    assert not wrong


@pytest.mark.filterwarnings("ignore")
def test_divergences():
    made = {name: make() for name, make in CASES.items()}
    wrong = {}
    for pair, value in KL.items():
        a, b = pair.split(" || ")
        mine = attempt(lambda a=a, b=b: kl_divergence(made[a], made[b]))
        if not close(mine, value, abs_=1e-5):
            wrong[pair] = mine, value
    assert not wrong


def test_every_distribution_is_recorded():
    named = {case.split()[0] for case in RECORDED}
    public = {name for name, value in vars(torch.distributions).items()
              if isinstance(value, type) and issubclass(value, Distribution)}
    assert public - named == {"Distribution", "ExponentialFamily"}


@pytest.mark.parametrize("name", [
    "Normal", "Laplace", "Gumbel", "Uniform", "Exponential", "Cauchy", "Weibull", "Pareto",
    "HalfNormal", "LogNormal", "Kumaraswamy", "GeneralizedPareto",
])
def test_density_is_the_derivative_of_the_cdf(name):
    d = CASES[name]()
    torch.manual_seed(0)
    x = d.sample((4,)).detach().requires_grad_()
    slope, = torch.autograd.grad(d.cdf(x).sum(), x)
    assert torch.allclose(slope, d.log_prob(x).exp(), rtol=1e-3, atol=1e-5)
    assert torch.allclose(d.icdf(d.cdf(x)), x, rtol=1e-2, atol=1e-3)


def test_rsample_carries_gradients():
    loc = torch.zeros(3, requires_grad=True)
    scale = torch.ones(3, requires_grad=True)
    torch.manual_seed(0)
    sample = Normal(loc, scale).rsample((5,))
    sample.sum().backward()
    assert loc.grad.tolist() == [5.0] * 3
    assert torch.allclose(scale.grad, sample.detach().sum(0), atol=1e-6)
    assert not Normal(loc, scale).sample().requires_grad


def test_exponential_family_gives_known_entropies():
    for d in (Normal(0.5, 2.0), Gamma(2.0, 3.0), torch.distributions.Exponential(0.7)):
        d = type(d)(*(getattr(d, name).reshape(1) for name in d.arg_constraints))
        assert torch.allclose(ExponentialFamily.entropy(d), d.entropy(), atol=1e-5)


@pytest.mark.parametrize("make, message", [
    (lambda: Normal(0.0, -1.0), r"Expected parameter scale \(Tensor of shape \(\)\) of "
     r"distribution Normal\(loc: 0.0, scale: -1.0\) to satisfy the constraint "
     r"GreaterThan\(lower_bound=0.0\), "
     "but found invalid values:\n-1.0"),
    (lambda: Categorical(), "Either `probs` or `logits` must be specified, but not both."),
    (lambda: Categorical(torch.tensor(1.0)), "`probs` parameter must be at least one-dimensional"),
    (lambda: Uniform(1.0, 0.0), "Expected parameter low"),
    (lambda: Independent(Normal(0.0, 1.0), 1), "Expected reinterpreted_batch_ndims <= len"),
    (lambda: torch.distributions.MultivariateNormal(torch.zeros(2)), "Exactly one of covariance"),
    (lambda: torch.distributions.LKJCholesky(1), "Expected dim to be an integer greater than or"),
    (lambda: Normal("a", 1.0), "Input arguments must all be instances of Number, torch.Tensor"),
])
def test_bad_parameters(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_bad_values():
    d = Normal(torch.zeros(2), 1.0)
    with pytest.raises(ValueError, match="The value argument to log_prob must be a Tensor"):
        d.log_prob(1.0)
    with pytest.raises(ValueError, match="Value is not broadcastable with batch_shape"):
        d.log_prob(torch.zeros(3))
    with pytest.raises(ValueError, match=r"within the support \(Real\(\)\) of the distribution"):
        d.log_prob(torch.tensor([float("nan"), 0.0]))
    with pytest.raises(ValueError, match="right-most size of value must match event_shape"):
        torch.distributions.Dirichlet(torch.ones(2)).log_prob(torch.ones(3))
    unchecked = Normal(torch.zeros(2), 1.0, validate_args=False)
    assert unchecked.log_prob(torch.tensor([float("nan"), 0.0]))[0].isnan()


def test_default_of_validation():
    try:
        Distribution.set_default_validate_args(False)
        assert Normal(0.0, -1.0).scale.item() == -1.0
    finally:
        Distribution.set_default_validate_args(True)


def test_subclasses_must_expand_themselves():
    class Shifted(Normal):
        def __init__(self, shift):
            super().__init__(shift, 1.0)

    with pytest.raises(NotImplementedError, match=r"must also define a custom \.expand"):
        Shifted(torch.zeros(1)).expand((3,))

    class Same(Normal):
        pass

    assert type(Same(0.0, 1.0).expand((3,))) is Same


def test_register_kl_finds_the_most_specific():
    class A(Normal):
        pass

    class B(A):
        pass

    @register_kl(A, Normal)
    def first(p, q):
        return "A, Normal"

    @register_kl(Normal, B)
    def second(p, q):
        return "Normal, B"

    assert kl_divergence(A(0.0, 1.0), Normal(0.0, 1.0)) == "A, Normal"
    with pytest.warns(RuntimeWarning, match="Ambiguous kl_divergence"):
        kl_divergence(A(0.0, 1.0), B(0.0, 1.0))
    with pytest.raises(NotImplementedError, match=r"No KL\(p \|\| q\) is implemented for p type"):
        kl_divergence(torch.distributions.StudentT(3.0), Normal(0.0, 1.0))


def test_constraints_of_classes_are_dependent():
    assert constraints.is_dependent(Categorical.support)
    assert not constraints.is_dependent(Normal.support)
    assert Categorical.support.is_discrete and Categorical.support.event_dim == 0
