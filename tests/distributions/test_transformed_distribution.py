"""Distributions of transformed variables."""

import pytest
from distribution_cases import check_cdf, check_recorded

import flambeau as torch
from flambeau.distributions import (
    AffineTransform,
    CorrCholeskyTransform,
    ExpTransform,
    Independent,
    LogNormal,
    Normal,
    ReshapeTransform,
    SigmoidTransform,
    StickBreakingTransform,
    TransformedDistribution,
    Uniform,
    kl_divergence,
)


def test_recorded():
    check_recorded(torch, "TransformedDistribution")


def test_change_of_variables():
    base = Normal(torch.tensor([0.3, 1.0]), 0.8)
    d = TransformedDistribution(base, ExpTransform())
    x = torch.tensor([0.5, 3.0])
    torch.testing.assert_close(d.log_prob(x), LogNormal(base.loc, 0.8).log_prob(x))
    torch.testing.assert_close(d.cdf(x), base.cdf(x.log()))
    check_cdf(torch, d)


def test_decreasing_transforms_turn_the_cdf_around():
    d = TransformedDistribution(Uniform(0.0, 1.0), AffineTransform(1.0, torch.tensor(-2.0)))
    x = torch.tensor([-0.5, 0.0, 0.5])
    torch.testing.assert_close(d.cdf(x), (x + 1) / 2)
    torch.testing.assert_close(d.icdf(d.cdf(x)), x)
    mixed = TransformedDistribution(Uniform(0.0, 1.0),
                                    [SigmoidTransform().inv, AffineTransform(2.0, -3.0)])
    torch.testing.assert_close(mixed.icdf(torch.tensor(0.5)), torch.tensor(2.0))


def test_shapes():
    base = Normal(torch.zeros(2, 3), 1.0)
    d = TransformedDistribution(base, StickBreakingTransform())
    assert (d.batch_shape, d.event_shape) == ((2,), (4,))
    assert isinstance(d.base_dist, Independent) and d.log_prob(d.sample((5,))).shape == (5, 2)
    assert d.expand((7, 2)).sample().shape == (7, 2, 4)
    grown = TransformedDistribution(Normal(0.0, 1.0), AffineTransform(torch.zeros(3), 1.0))
    assert grown.batch_shape == (3,) and grown.base_dist.batch_shape == (3,)
    assert len(set(grown.sample().tolist())) == 3
    reshaped = TransformedDistribution(base, ReshapeTransform((3,), (3, 1)))
    assert reshaped.event_shape == (3, 1) and repr(reshaped.support) == (
        "IndependentConstraint(Real(), 2)")


def test_no_transforms():
    base = Normal(torch.zeros(2), 1.0)
    d = TransformedDistribution(base, [])
    assert d.support is base.support
    assert torch.equal(d.log_prob(torch.ones(2)), base.log_prob(torch.ones(2)))


def test_gradients_reach_the_transforms():
    scale = torch.tensor(2.0, requires_grad=True)
    d = TransformedDistribution(Normal(0.0, 1.0), AffineTransform(1.0, scale))
    torch.manual_seed(0)
    x = d.rsample((4,))
    slope, = torch.autograd.grad(x.sum(), scale)
    torch.testing.assert_close(slope, ((x - 1) / scale).sum().detach())
    assert not d.sample().requires_grad and d.has_rsample


def test_divergence_of_the_same_transforms():
    p, q = Normal(0.0, 1.0), Normal(1.0, 2.0)
    d = [TransformedDistribution(base, [ExpTransform()]) for base in (p, q)]
    torch.testing.assert_close(kl_divergence(*d), kl_divergence(p, q))
    with pytest.raises(NotImplementedError):
        kl_divergence(d[0], TransformedDistribution(q, [SigmoidTransform()]))


@pytest.mark.parametrize("base, transforms, message", [
    (Normal(0.0, 1.0), 3, "transforms must be a Transform or list, but was 3"),
    (Normal(0.0, 1.0), [3], "transforms must be a Transform or a list of Transforms"),
    (Normal(0.0, 1.0), StickBreakingTransform(), "base_distribution needs to have shape with size"),
    (Normal(torch.zeros(2), 1.0), CorrCholeskyTransform(),
     "Input is not a flattened lower-diagonal number"),
])
def test_bad_arguments(base, transforms, message):
    with pytest.raises(ValueError, match=message):
        TransformedDistribution(base, transforms)
