"""Transforms of single numbers."""

import math

import pytest
from transform_cases import X, check_bijection, check_determinant

import flambeau as torch
from flambeau.distributions import Normal, transforms

KINDS = [
    transforms.AffineTransform(1.0, -2.0),
    transforms.AffineTransform(torch.tensor([1.0, 2.0, 3.0]), 2.0, event_dim=1),
    transforms.CumulativeDistributionTransform(Normal(0.0, 1.0)),
    transforms.ExpTransform(),
    transforms.PowerTransform(torch.tensor(2.0, dtype=torch.float64)),
    transforms.PowerTransform(-0.5),
    transforms.SigmoidTransform(),
    transforms.SoftplusTransform(),
    transforms.TanhTransform(),
]


@pytest.mark.parametrize("t", KINDS, ids=lambda t: type(t).__name__)
def test_bijections(t):
    check_bijection(t)
    check_determinant(t)


@pytest.mark.parametrize("t", KINDS, ids=lambda t: type(t).__name__)
def test_sign_is_that_of_the_slope(t):
    x = X.clone().requires_grad_()
    slope, = torch.autograd.grad(t(x).sum(), x)
    assert (slope.sign() == t.sign).all()


def test_determinant_of_an_event():
    """Three numbers, each scaled: the sum of three logarithms."""
    scale = torch.tensor([2.0, -3.0, 0.5])
    t = transforms.AffineTransform(0.0, scale, event_dim=1)
    x = torch.zeros(4, 3)
    torch.testing.assert_close(t.log_abs_det_jacobian(x, t(x)), torch.full((4,), math.log(3)))
    t = transforms.AffineTransform(0.0, 2.0, event_dim=2)
    torch.testing.assert_close(t.log_abs_det_jacobian(x, t(x)), torch.tensor(12 * math.log(2)))


def test_absolute_values():
    t = transforms.AbsTransform()
    x = torch.tensor([-2.0, 3.0])
    assert t(x).tolist() == [2.0, 3.0] and t.inv(t(x)).tolist() == [2.0, 3.0]
    assert not t.bijective and t == transforms.AbsTransform()


def test_sigmoid_stays_inside():
    y = transforms.SigmoidTransform()(torch.tensor([-1000.0, 1000.0]))
    finfo = torch.finfo(torch.float32)
    assert y.tolist() == [finfo.tiny, 1 - finfo.eps]
    assert transforms.SigmoidTransform().inv(torch.tensor([0.0, 1.0])).isfinite().all()


def test_equality():
    affine = transforms.AffineTransform
    assert affine(1, 2) == affine(1, 2) != affine(1, 3)
    assert affine(1, 2) == affine(torch.tensor(1), 2)
    assert transforms.PowerTransform(2.0) == transforms.PowerTransform(2.0)
    assert transforms.PowerTransform(2.0) != transforms.PowerTransform(3.0)
    assert transforms.ExpTransform() == transforms.ExpTransform() != transforms.TanhTransform()


def test_shapes_broadcast():
    t = transforms.AffineTransform(torch.zeros(3, 1), torch.ones(2))
    assert t.forward_shape((2,)) == (3, 2) and t.inverse_shape((1, 1)) == (3, 2)
    assert transforms.PowerTransform(torch.ones(3)).forward_shape((2, 1)) == (2, 3)
