"""The Dirichlet distribution."""

import math

import pytest
from distribution_cases import check_moments, check_recorded

import flambeau as torch
from flambeau.distributions import Dirichlet


def test_recorded():
    check_recorded(torch, "Dirichlet")


def test_moments():
    d = Dirichlet(torch.tensor([0.5, 2.0, 3.0], dtype=torch.float64))
    check_moments(torch, d)
    torch.testing.assert_close(d.mean, d.concentration / 5.5)


def test_flat():
    """Ones: the same density everywhere, (n - 1)!."""
    d = Dirichlet(torch.ones(4, dtype=torch.float64))
    x = torch.tensor([[0.1, 0.2, 0.3, 0.4], [0.25] * 4], dtype=torch.float64)
    torch.testing.assert_close(d.log_prob(x), torch.full((2,), math.log(6), dtype=torch.float64))
    assert d.entropy().item() == pytest.approx(-math.log(6))


def test_mode():
    assert Dirichlet(torch.tensor([2.0, 3.0])).mode.tolist() == pytest.approx([1 / 3, 2 / 3])
    assert Dirichlet(torch.tensor([1.0, 3.0])).mode.tolist() == [0.0, 1.0]
    assert Dirichlet(torch.tensor([0.5, 0.7])).mode.tolist() == [1.0, 0.0]   # one of the corners


def test_samples_lie_on_the_simplex():
    torch.manual_seed(0)
    x = Dirichlet(torch.tensor([[0.1, 0.2, 0.3], [5.0, 6.0, 7.0]])).rsample((100,))
    assert x.shape == (100, 2, 3) and (x >= 0).all()
    torch.testing.assert_close(x.sum(-1), torch.ones(100, 2))


def test_rsample_gradient_keeps_the_sum():
    concentration = torch.tensor([0.5, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
    sample = Dirichlet(concentration).rsample()
    slope, = torch.autograd.grad(sample.sum(), concentration)
    torch.testing.assert_close(slope, torch.zeros(3, dtype=torch.float64), rtol=0, atol=1e-8)


def test_bad_arguments():
    with pytest.raises(ValueError, match="`concentration` parameter must be at least one-dimensio"):
        Dirichlet(torch.tensor(1.0))
    with pytest.raises(ValueError, match="right-most size of value must match event_shape"):
        Dirichlet(torch.ones(2)).log_prob(torch.ones(3))
    with pytest.raises(ValueError, match=r"support \(Simplex\(\)\)"):
        Dirichlet(torch.ones(2)).log_prob(torch.ones(2))
