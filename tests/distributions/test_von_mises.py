"""The von Mises distribution of angles."""

import math

import pytest
from distribution_cases import check_recorded

import flambeau as torch
from flambeau.distributions import VonMises


def test_recorded():
    check_recorded(torch, "VonMises")


@pytest.mark.parametrize("concentration", [0.1, 1.0, 5.0, 100.0])
def test_density_integrates_to_one(concentration):
    x = (torch.arange(2000, dtype=torch.float64) + 0.5) / 2000 * 2 * math.pi - math.pi
    p = VonMises(torch.tensor(0.7).double(), torch.tensor(concentration).double()).log_prob(x).exp()
    assert (p.sum() * 2 * math.pi / 2000).item() == pytest.approx(1.0, abs=1e-6)


def test_density_is_periodic():
    d = VonMises(torch.tensor(0.7), torch.tensor(2.0))
    x = torch.tensor([-1.0, 0.0, 2.0])
    torch.testing.assert_close(d.log_prob(x + 2 * math.pi), d.log_prob(x), rtol=1e-5, atol=1e-5)


def test_circular_moments():
    """The mean direction, and one minus the length of the mean of unit vectors."""
    torch.manual_seed(0)
    d = VonMises(torch.tensor([0.5, -2.0]), torch.tensor([2.0, 10.0]))
    x = d.sample((20000,))
    assert (x.abs() <= math.pi).all()
    mean = torch.atan2(x.sin().mean(0), x.cos().mean(0))
    torch.testing.assert_close(mean, d.mean, atol=0.03, rtol=0)
    length = (x.sin().mean(0) ** 2 + x.cos().mean(0) ** 2).sqrt()
    torch.testing.assert_close(1 - length, d.variance, atol=0.01, rtol=0)


@pytest.mark.parametrize("concentration", [1e-6, 1e4])
def test_extreme_concentrations(concentration):
    torch.manual_seed(0)
    x = VonMises(torch.tensor(0.0), torch.tensor(concentration)).sample((500,))
    assert x.isfinite().all()
    spread = math.pi / math.sqrt(3) if concentration < 1 else concentration**-0.5
    assert x.std().item() == pytest.approx(spread, rel=0.15)


def test_expand():
    wide = VonMises(torch.tensor([0.5, -2.0]), 2.0).expand((3, 2))
    assert wide.sample((4,)).shape == (4, 3, 2) and wide.mode.shape == (3, 2)
