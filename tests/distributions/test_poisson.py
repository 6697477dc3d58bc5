"""The Poisson distribution."""

import pytest
from distribution_cases import check_moments, check_recorded

import flambeau as torch
from flambeau.distributions import Poisson


def test_recorded():
    check_recorded(torch, "Poisson")


def test_moments():
    check_moments(torch, Poisson(torch.tensor([0.5, 30.0], dtype=torch.float64)))


def test_probabilities():
    k = torch.arange(60.0, dtype=torch.float64)
    p = Poisson(torch.tensor(3.5, dtype=torch.float64)).log_prob(k).exp()
    assert p.sum().item() == pytest.approx(1.0)
    torch.testing.assert_close(p[1:] * k[1:], 3.5 * p[:-1])    # the recurrence
    assert Poisson(torch.tensor(3.5)).mode.item() == p.argmax().item() == 3


def test_rate_zero():
    d = Poisson(torch.tensor(0.0))
    assert d.log_prob(torch.tensor([0.0, 1.0])).tolist() == [0.0, float("-inf")]
    assert d.sample((3,)).tolist() == [0.0] * 3


def test_slope_by_the_rate():
    rate = torch.tensor([0.5, 3.0], requires_grad=True)
    slope, = torch.autograd.grad(Poisson(rate).log_prob(torch.tensor([2.0, 1.0])).sum(), rate)
    torch.testing.assert_close(slope, torch.tensor([2 / 0.5 - 1, 1 / 3 - 1]))
    assert not Poisson(rate).sample().requires_grad


def test_bad_arguments():
    with pytest.raises(ValueError, match="Expected parameter rate"):
        Poisson(torch.tensor(-1.0))
    with pytest.raises(ValueError, match=r"IntegerGreaterThan\(lower_bound=0\)"):
        Poisson(torch.tensor(1.0)).log_prob(torch.tensor(0.5))
