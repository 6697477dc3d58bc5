"""Batch dimensions that count as parts of the event."""

import pytest
from distribution_cases import check_recorded

import flambeau as torch
from flambeau.distributions import (
    Bernoulli,
    Independent,
    Laplace,
    MultivariateNormal,
    Normal,
    kl_divergence,
)


def test_recorded():
    check_recorded(torch, "Independent")


def test_sums_over_the_event():
    base = Normal(torch.arange(6.0).reshape(2, 3), 2.0)
    d = Independent(base, 2)
    x = torch.ones(4, 2, 3)
    torch.testing.assert_close(d.log_prob(x), base.log_prob(x).sum((-2, -1)))
    torch.testing.assert_close(d.entropy(), base.entropy().sum())
    assert torch.equal(d.mean, base.mean) and torch.equal(d.mode, base.mode)
    assert torch.equal(d.variance, base.variance)


def test_diagonal_normal():
    loc, scale = torch.tensor([1.0, 2.0]), torch.tensor([0.5, 3.0])
    d = Independent(Normal(loc, scale), 1)
    other = MultivariateNormal(loc, torch.diag(scale**2))
    x = torch.randn(5, 2)
    torch.testing.assert_close(d.log_prob(x), other.log_prob(x))
    torch.testing.assert_close(d.entropy(), other.entropy())


def test_support_and_expand():
    d = Independent(Laplace(torch.zeros(2, 3), 1.0), 1)
    assert repr(d.support) == "IndependentConstraint(Real(), 1)"
    assert repr(Independent(Laplace(torch.zeros(3), 1.0), 0).support) == "Real()"
    wide = d.expand((4, 2))
    assert wide.batch_shape == (4, 2) and wide.event_shape == (3,)
    assert wide.base_dist.loc.shape == (4, 2, 3)
    assert d.has_rsample and not d.has_enumerate_support


def test_enumeration():
    base = Bernoulli(torch.tensor([0.2, 0.3]))
    assert torch.equal(Independent(base, 0).enumerate_support(), base.enumerate_support())
    with pytest.raises(NotImplementedError, match="Enumeration over cartesian product is not imp"):
        Independent(base, 1).enumerate_support()


def test_too_many_dimensions():
    message = r"Expected reinterpreted_batch_ndims <= len\(base_distribution.batch_shape\), actual"
    with pytest.raises(ValueError, match=message):
        Independent(Normal(0.0, 1.0), 1)


def test_divergence():
    p, q = Normal(torch.zeros(3), 1.0), Normal(torch.ones(3), 2.0)
    torch.testing.assert_close(kl_divergence(Independent(p, 1), Independent(q, 1)),
                               kl_divergence(p, q).sum())
    with pytest.raises(NotImplementedError):
        kl_divergence(Independent(p, 1), Independent(q, 0))


def test_repr():
    assert repr(Independent(Normal(torch.zeros(2), 1.0), 1)) == (
        "Independent(Normal(loc: torch.Size([2]), scale: torch.Size([2])), 1)")
