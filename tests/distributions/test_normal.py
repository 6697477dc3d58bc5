"""The normal distribution."""

import math

import pytest
from distribution_cases import check_cdf, check_moments, check_recorded

import flambeau as torch
from flambeau.distributions import Normal


def test_recorded():
    check_recorded(torch, "Normal")


def test_moments_and_cdf():
    loc, scale = torch.tensor([[0.0, 1.0], [2.0, 3.0]], dtype=torch.float64)
    check_moments(torch, Normal(loc, scale))
    check_cdf(torch, Normal(torch.tensor([0.0, 1.0]), torch.tensor([[2.0], [3.0]])))


def test_closed_forms():
    d = Normal(1.0, 2.0)
    x = torch.tensor([1.0, 3.0])
    expected = [-math.log(2) - 0.5 * math.log(2 * math.pi) - z * z / 2 for z in (0, 1)]
    torch.testing.assert_close(d.log_prob(x), torch.tensor(expected))
    assert d.entropy().item() == pytest.approx(0.5 * math.log(2 * math.pi * math.e * 4))
    assert d.stddev.item() == 2.0 and d.variance.item() == 4.0 and d.mode.item() == 1.0
    torch.testing.assert_close(d.icdf(torch.tensor([0.0, 0.5, 0.8413447, 1.0])),
                               torch.tensor([-math.inf, 1.0, 3.0, math.inf]), rtol=1e-5, atol=1e-5)


def test_rsample_carries_gradients():
    loc = torch.zeros(3, requires_grad=True)
    scale = torch.ones(3, requires_grad=True)
    torch.manual_seed(0)
    sample = Normal(loc, scale).rsample((5,))
    sample.sum().backward()
    assert loc.grad.tolist() == [5.0] * 3
    torch.testing.assert_close(scale.grad, sample.detach().sum(0), atol=1e-6, rtol=0)
    assert not Normal(loc, scale).sample().requires_grad


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_dtypes(dtype):
    d = Normal(torch.zeros(2, dtype=dtype), torch.ones(2, dtype=dtype))
    assert d.sample().dtype == d.log_prob(torch.zeros(2, dtype=dtype)).dtype == dtype
    assert d.entropy().dtype == d.cdf(torch.zeros(2, dtype=dtype)).dtype == dtype


def test_samples_are_those_of_torch_normal():
    torch.manual_seed(5)
    sample = Normal(torch.arange(3.0), 2.0).sample((4,))
    torch.manual_seed(5)
    loc = torch.arange(3.0).expand(4, 3)
    assert torch.equal(sample, torch.normal(loc, torch.full((4, 3), 2.0)))
