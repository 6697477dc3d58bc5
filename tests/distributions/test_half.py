"""Absolute values of symmetric variables: half-normal and half-Cauchy."""

import math

import pytest

import flambeau as torch
from flambeau.distributions import Cauchy, HalfCauchy, HalfNormal, Normal

KINDS = [(HalfNormal, Normal), (HalfCauchy, Cauchy)]


@pytest.mark.parametrize("half, whole", KINDS)
def test_twice_the_density_of_the_upper_half(half, whole):
    scale = torch.tensor([0.5, 2.0], dtype=torch.float64)
    p, q = half(scale), whole(torch.zeros_like(scale), scale)
    x = torch.tensor([[0.3, 0.3], [1.5, 0.1]], dtype=torch.float64)
    torch.testing.assert_close(p.log_prob(x).exp(), 2 * q.log_prob(x).exp())
    torch.testing.assert_close(p.cdf(x), q.cdf(x) - q.cdf(-x))
    torch.testing.assert_close(p.icdf(p.cdf(x)), x)
    torch.testing.assert_close(p.entropy(), q.entropy() - math.log(2))


@pytest.mark.parametrize("half, whole", KINDS)
def test_scale_and_mode(half, whole):
    p = half(torch.tensor([1.0, 2.0]))
    assert p.scale.tolist() == [1.0, 2.0]
    assert p.mode.tolist() == [0.0, 0.0]
    wide = p.expand((3, 2))
    assert type(wide) is half and wide.scale.shape == (3, 2)
    assert wide.sample((4,)).shape == (4, 3, 2)


@pytest.mark.parametrize("half, whole", KINDS)
def test_below_zero(half, whole):
    x = torch.tensor(-1.0)
    with pytest.raises(ValueError, match=r"support \(GreaterThanEq\(lower_bound=0.0\)\)"):
        half(1.0).log_prob(x)
    assert half(1.0, validate_args=False).log_prob(x).item() == -math.inf
    with pytest.raises(ValueError, match="Expected value argument"):
        half(1.0).cdf(x)


@pytest.mark.parametrize("half, whole", KINDS)
def test_samples_are_absolute_values(half, whole):
    torch.manual_seed(3)
    samples = half(2.0).sample((5,))
    torch.manual_seed(3)
    assert torch.equal(samples, whole(torch.tensor(0.0), 2.0).sample((5,)).abs())
