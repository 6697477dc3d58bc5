"""One-hot vectors relaxed to the simplex."""

import math

import pytest
from distribution_cases import check_recorded

import flambeau as torch
from flambeau.distributions import RelaxedBernoulli, RelaxedOneHotCategorical
from flambeau.distributions.relaxed_categorical import ExpRelaxedCategorical

PROBS = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64)
T = torch.tensor(0.8, dtype=torch.float64)


def test_recorded():
    check_recorded(torch, "RelaxedOneHotCategorical")


def test_density():
    """(n-1)! t^(n-1) prod(p_k x_k^(-t-1)) / (sum p_k x_k^-t)^n."""
    x = torch.tensor([0.1, 0.6, 0.3], dtype=torch.float64)
    t = T.item()
    expected = math.log(2) + 2 * math.log(t) + (PROBS.log() - (t + 1) * x.log()).sum()
    expected = expected - 3 * (PROBS * x**-t).sum().log()
    torch.testing.assert_close(RelaxedOneHotCategorical(T, PROBS).log_prob(x), expected)


def test_is_the_exponential_of_its_logarithm():
    x = torch.tensor([0.1, 0.6, 0.3], dtype=torch.float64)
    torch.testing.assert_close(RelaxedOneHotCategorical(T, PROBS).log_prob(x),
                               ExpRelaxedCategorical(T, PROBS).log_prob(x.log()) - x.log().sum())


def test_two_categories_are_a_relaxed_bernoulli_variable():
    x = torch.tensor([0.25, 0.75], dtype=torch.float64)
    p = torch.tensor([0.3, 0.7], dtype=torch.float64)
    torch.testing.assert_close(RelaxedOneHotCategorical(T, p).log_prob(x),
                               RelaxedBernoulli(T, p[0]).log_prob(x[0]))


def test_samples_lie_on_the_simplex():
    torch.manual_seed(0)
    x = RelaxedOneHotCategorical(T, PROBS.expand(2, 3)).rsample((50,))
    assert x.shape == (50, 2, 3) and (x >= 0).all()
    torch.testing.assert_close(x.sum(-1), torch.ones(50, 2, dtype=torch.float64))


def test_attributes_and_expand():
    d = RelaxedOneHotCategorical(T, logits=PROBS.log())
    torch.testing.assert_close(d.probs, PROBS)
    assert d.temperature is T and repr(d.support) == "Simplex()"
    assert d.expand((4,)).sample().shape == (4, 3)
    assert ExpRelaxedCategorical(T, PROBS).param_shape == (3,)
    with pytest.raises(ValueError, match="Either `probs` or `logits` must be specified"):
        RelaxedOneHotCategorical(T)
