"""The uniform distribution."""

import math

import pytest
from distribution_cases import check_cdf, check_moments, check_recorded

import flambeau as torch
from flambeau.distributions import Uniform


def test_recorded():
    check_recorded(torch, "Uniform")


def test_moments_and_cdf():
    low, high = torch.tensor([[0.0, -1.0], [1.0, 4.0]], dtype=torch.float64)
    check_moments(torch, Uniform(low, high))
    check_cdf(torch, Uniform(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 4.0])))


def test_the_upper_end_is_not_inside():
    d = Uniform(1.0, 3.0)
    assert d.log_prob(torch.tensor([1.0, 2.0, 3.0])).tolist() == pytest.approx(
        [-math.log(2), -math.log(2), -math.inf])
    assert Uniform(1.0, 3.0, validate_args=False).log_prob(torch.tensor(0.0)).item() == -math.inf
    outside = Uniform(1.0, 3.0, validate_args=False).cdf(torch.tensor([0.0, 2.0, 9.0]))
    assert outside.tolist() == [0.0, 0.5, 1.0]


def test_closed_forms():
    d = Uniform(1.0, 3.0)
    assert d.entropy().item() == pytest.approx(math.log(2))
    assert d.stddev.item() == pytest.approx(2 / math.sqrt(12)) and d.mode.isnan()
    assert repr(d.support) == "Interval(lower_bound=1.0, upper_bound=3.0)"


def test_rsample_gradient():
    low, high = torch.zeros(2, requires_grad=True), torch.ones(2, requires_grad=True)
    x = Uniform(low, high).rsample()
    by_low, by_high = torch.autograd.grad(x.sum(), (low, high))
    torch.testing.assert_close(by_high, x.detach())
    torch.testing.assert_close(by_low, 1 - x.detach())


def test_bad_arguments():
    with pytest.raises(ValueError, match=r"parameter low .* LessThan\(upper_bound=tensor\(\["):
        Uniform(torch.tensor([0.0, 2.0]), torch.tensor([1.0, 2.0]))
