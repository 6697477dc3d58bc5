"""The geometric distribution."""

import math

import pytest
from distribution_cases import check_moments, check_recorded

import flambeau as torch
from flambeau.distributions import Geometric


def test_recorded():
    check_recorded(torch, "Geometric")


def test_moments():
    check_moments(torch, Geometric(torch.tensor([0.2, 0.7], dtype=torch.float64)))


def test_probabilities():
    k = torch.arange(200.0, dtype=torch.float64)
    d = Geometric(torch.tensor(0.25, dtype=torch.float64))
    p = d.log_prob(k).exp()
    torch.testing.assert_close(p, 0.25 * 0.75**k)
    assert d.entropy().item() == pytest.approx(-(p * p.log()).sum().item())
    assert d.mode.item() == 0.0


def test_certain_success():
    d = Geometric(torch.tensor(1.0))
    assert d.log_prob(torch.tensor([0.0, 1.0])).tolist() == [0.0, -math.inf]
    assert d.sample((5,)).tolist() == [0.0] * 5


def test_bad_arguments():
    with pytest.raises(ValueError, match="to be positive but found invalid values"):
        Geometric(torch.tensor([0.0, 0.5]))
    with pytest.raises(ValueError, match=r"IntegerGreaterThan\(lower_bound=0\)"):
        Geometric(torch.tensor(0.5)).log_prob(torch.tensor(0.5))
