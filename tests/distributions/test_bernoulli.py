"""The Bernoulli distribution."""

import math

import pytest
from distribution_cases import check_moments, check_recorded

import flambeau as torch
from flambeau.distributions import Bernoulli


def test_recorded():
    check_recorded(torch, "Bernoulli", "Bernoulli logits")


def test_moments():
    check_moments(torch, Bernoulli(torch.tensor([0.1, 0.7])))


def test_probability_and_entropy():
    d = Bernoulli(torch.tensor([0.25, 0.5], dtype=torch.float64))
    torch.testing.assert_close(d.log_prob(torch.ones(2).double()).exp(), d.probs)
    torch.testing.assert_close(d.log_prob(torch.zeros(2).double()).exp(), 1 - d.probs)
    expected = [0.25 * math.log(4) + 0.75 * math.log(4 / 3), math.log(2)]
    torch.testing.assert_close(d.entropy(), torch.tensor(expected, dtype=torch.float64))
    assert d.mode.tolist()[0] == 0.0 and d.mode[1].isnan()


@pytest.mark.parametrize("probs, value, expected", [(0.0, 0.0, 0.0), (1.0, 1.0, 0.0)])
def test_certainty(probs, value, expected):
    d = Bernoulli(torch.tensor(probs))
    assert abs(d.log_prob(torch.tensor(value)).item() - expected) < 1e-6
    assert d.log_prob(torch.tensor(1 - value)).item() < -15
    assert d.sample((5,)).tolist() == [probs] * 5


def test_support():
    d = Bernoulli(torch.tensor([0.2, 0.3]))
    assert d.enumerate_support().tolist() == [[0.0, 0.0], [1.0, 1.0]]
    assert d.enumerate_support(expand=False).tolist() == [[0.0], [1.0]]
    with pytest.raises(ValueError, match=r"support \(Boolean\(\)\)"):
        d.log_prob(torch.tensor([0.5, 0.0]))
    with pytest.raises(ValueError, match=r"constraint Interval\(lower_bound=0.0, upper_bound=1.0"):
        Bernoulli(torch.tensor(1.5))


def test_gradient():
    logits = torch.tensor([0.3, -2.0], dtype=torch.float64, requires_grad=True)
    value = torch.tensor([1.0, 0.0], dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda x: Bernoulli(logits=x).log_prob(value), logits)
    assert torch.autograd.gradcheck(lambda x: Bernoulli(logits=x).entropy(), logits)
    assert not Bernoulli(logits=logits).sample().requires_grad
