"""The categorical distribution."""

import math

import pytest
from distribution_cases import check_recorded

import flambeau as torch
from flambeau.distributions import Categorical, constraints


def test_recorded():
    check_recorded(torch, "Categorical", "Categorical logits")


def test_frequencies():
    torch.manual_seed(0)
    d = Categorical(torch.tensor([1.0, 3.0, 6.0]))
    frequencies = torch.bincount(d.sample((20000,)), minlength=3) / 20000
    torch.testing.assert_close(frequencies, d.probs, atol=0.02, rtol=0)


def test_log_prob_broadcasts():
    d = Categorical(torch.tensor([[0.5, 0.5], [0.25, 0.75]]))
    value = torch.tensor([[0], [1], [1]])
    torch.testing.assert_close(d.log_prob(value).exp(),
                               torch.tensor([[0.5, 0.25], [0.5, 0.75], [0.5, 0.75]]))
    assert d.sample((4, 5)).shape == (4, 5, 2) and d.sample().dtype == torch.int64


def test_entropy_and_mode():
    d = Categorical(torch.tensor([[1.0, 1.0], [0.0, 1.0]]))
    torch.testing.assert_close(d.entropy(), torch.tensor([math.log(2), 0.0]))
    assert Categorical(torch.tensor([0.1, 0.7, 0.2])).mode.item() == 1
    assert d.mean.isnan().all() and d.variance.shape == (2,)


def test_bad_arguments():
    with pytest.raises(ValueError, match=r"`probs` parameter must be at least one-dimensional."):
        Categorical(torch.tensor(1.0))
    with pytest.raises(ValueError, match=r"`logits` parameter must be at least one-dimensional."):
        Categorical(logits=torch.tensor(1.0))
    with pytest.raises(ValueError, match=r"satisfy the constraint Simplex\(\)"):
        Categorical(torch.tensor([-1.0, 2.0]))
    with pytest.raises(ValueError, match=r"IntegerInterval\(lower_bound=0, upper_bound=1\)"):
        Categorical(torch.ones(2)).log_prob(torch.tensor(2))


def test_the_support_depends_on_the_parameters():
    assert constraints.is_dependent(Categorical.support)
    assert Categorical.support.is_discrete and Categorical.support.event_dim == 0
    assert Categorical(torch.ones(3)).enumerate_support().tolist() == [0, 1, 2]


def test_expand_keeps_what_was_given():
    wide = Categorical(logits=torch.zeros(3)).expand((2, 4))
    assert repr(wide) == "Categorical(logits: torch.Size([2, 4, 3]))"
    assert wide.enumerate_support().shape == (3, 2, 4)
    assert wide.enumerate_support(expand=False).shape == (3, 1, 1)
