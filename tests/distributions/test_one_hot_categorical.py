"""One-hot vectors."""

import pytest
from distribution_cases import check_moments, check_recorded

import flambeau as torch
from flambeau.distributions import (
    Categorical,
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
    kl_divergence,
)

PROBS = torch.tensor([0.2, 0.3, 0.5])


def test_recorded():
    check_recorded(torch, "OneHotCategorical", "OneHotCategoricalStraightThrough")


def test_moments():
    check_moments(torch, OneHotCategorical(PROBS))


def test_is_a_categorical_distribution():
    d, numbers = OneHotCategorical(PROBS), Categorical(PROBS)
    values = torch.eye(3)
    torch.testing.assert_close(d.log_prob(values), numbers.log_prob(torch.arange(3)))
    assert torch.equal(d.entropy(), numbers.entropy())
    assert torch.equal(d.probs, numbers.probs) and torch.equal(d.logits, numbers.logits)
    torch.manual_seed(1)
    sample = d.sample((5,))
    torch.manual_seed(1)
    assert torch.equal(sample.argmax(-1), numbers.sample((5,)))
    torch.testing.assert_close(kl_divergence(d, OneHotCategorical(torch.ones(3))),
                               kl_divergence(numbers, Categorical(torch.ones(3))))


def test_enumeration_and_mode():
    assert OneHotCategorical(PROBS).enumerate_support().tolist() == torch.eye(3).tolist()
    wide = OneHotCategorical(PROBS).expand((2,))
    assert wide.enumerate_support().shape == (3, 2, 3)
    assert wide.enumerate_support(expand=False).shape == (3, 1, 3)
    assert wide.mode.tolist() == [[0.0, 0.0, 1.0]] * 2 and wide.param_shape == (2, 3)


def test_straight_through():
    """Samples are one-hot, their gradient is that of the probabilities."""
    logits = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    d = OneHotCategoricalStraightThrough(logits=logits)
    x = d.rsample()
    assert d.has_rsample and sorted(x.tolist()) == [0.0, 0.0, 1.0]
    weights = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    slope, = torch.autograd.grad((x * weights).sum(), logits)
    expected = torch.autograd.functional.jacobian(
        lambda z: (torch.softmax(z, 0) * weights).sum(), torch.zeros(3, dtype=torch.float64))
    torch.testing.assert_close(slope, expected)
    assert not OneHotCategorical(PROBS).has_rsample


def test_bad_values():
    with pytest.raises(ValueError, match=r"support \(OneHot\(\)\)"):
        OneHotCategorical(PROBS).log_prob(torch.tensor([1.0, 1.0, 0.0]))
