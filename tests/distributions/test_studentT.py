"""Student's t distribution."""

import math

import pytest
from distribution_cases import check_moments, check_recorded

import flambeau as torch
from flambeau.distributions import Normal, StudentT


def test_recorded():
    check_recorded(torch, "StudentT")


def test_moments():
    check_moments(torch, StudentT(torch.tensor([9.0, 20.0], dtype=torch.float64), 1.0, 2.0))
    d = StudentT(torch.tensor([0.5, 1.5, 2.0, 4.0]), 1.0, 2.0)
    assert d.mean.tolist() == pytest.approx([math.nan, 1.0, 1.0, 1.0], nan_ok=True)
    assert d.variance.tolist() == pytest.approx([math.nan, math.inf, math.inf, 8.0], nan_ok=True)


def test_two_degrees():
    """p(t) = (2 + t^2)^(-3/2)."""
    t = torch.tensor([-3.0, 0.0, 10.0], dtype=torch.float64)
    two = torch.tensor(2.0, dtype=torch.float64)
    torch.testing.assert_close(StudentT(two).log_prob(t).exp(), (2 + t**2) ** -1.5)


def test_many_degrees_are_normal():
    x = torch.tensor([-2.0, 0.0, 1.5], dtype=torch.float64)
    many = torch.tensor(1e8, dtype=torch.float64)
    torch.testing.assert_close(StudentT(many).log_prob(x), Normal(0 * many, 1.0).log_prob(x),
                               rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(StudentT(many).entropy(), Normal(0 * many, 1.0).entropy(),
                               rtol=1e-6, atol=1e-6)


def test_shapes_and_gradient():
    df = torch.tensor([3.0, 5.0], dtype=torch.float64, requires_grad=True)
    assert StudentT(df, 1.0, 2.0).expand((4, 2)).rsample((3,)).shape == (3, 4, 2)
    x = torch.tensor([0.3, -2.0], dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda df: StudentT(df, 1.0, 2.0).log_prob(x), df)
    assert StudentT(df, 1.0, 2.0).mode.tolist() == [1.0, 1.0]
