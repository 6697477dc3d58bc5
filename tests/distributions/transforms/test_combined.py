"""Transforms made of others."""

import pytest
from transform_cases import X, check_bijection, check_determinant

import flambeau as torch
from flambeau.distributions import transforms

EXP, TANH = transforms.ExpTransform(), transforms.TanhTransform()


def test_compose():
    t = transforms.ComposeTransform([EXP, transforms.AffineTransform(1.0, -2.0)])
    check_bijection(t)
    check_determinant(t)
    torch.testing.assert_close(t(X), 1 - 2 * X.exp())
    assert t.sign == -1 and t.inv(t(X)).allclose(X)
    assert t == transforms.ComposeTransform([EXP, transforms.AffineTransform(1.0, -2.0)])


def test_compose_widens_events():
    t = transforms.ComposeTransform([EXP, transforms.StickBreakingTransform()])
    check_bijection(t)
    check_determinant(t, lambda y: y[:-1])
    assert t.domain.event_dim == t.codomain.event_dim == 1
    assert t.log_abs_det_jacobian(X, t(X)).shape == (2,)
    assert not transforms.ComposeTransform([EXP, transforms.AbsTransform()]).bijective


def test_identity():
    t = transforms.identity_transform
    assert t(X) is X and t.inv(X) is X and t.bijective
    assert t.log_abs_det_jacobian(X, X).tolist() == [[0.0] * 3] * 2
    assert repr(transforms.ComposeTransform([EXP])) == "ComposeTransform(\n    ExpTransform()\n)"


def test_independent():
    t = transforms.IndependentTransform(EXP, 1)
    check_bijection(t)
    check_determinant(t)
    torch.testing.assert_close(t.log_abs_det_jacobian(X, t(X)), X.sum(-1))
    assert repr(t) == "IndependentTransform(ExpTransform(), 1)"
    with pytest.raises(ValueError, match="Too few dimensions on input"):
        t(torch.tensor(1.0))


def test_cat():
    t = transforms.CatTransform([EXP, TANH], -1, [1, 2])
    check_bijection(t)
    check_determinant(t)
    assert torch.equal(t(X), torch.cat([X[:, :1].exp(), X[:, 1:].tanh()], -1))
    assert t.length == 3 and t.domain.check(X).all()


def test_cat_of_vectors():
    t = transforms.CatTransform([transforms.StickBreakingTransform(), EXP], 0, [1, 1])
    assert t.event_dim == 1
    x = X[:, :2]
    with pytest.raises(RuntimeError, match="Sizes of tensors must match except in dimension 0"):
        t(x)


def test_stack():
    parts = [EXP, transforms.SigmoidTransform()]
    t = transforms.StackTransform(parts, 0)
    check_bijection(t)
    expected = torch.stack([part.log_abs_det_jacobian(x, part(x)) for part, x in zip(parts, X)])
    torch.testing.assert_close(t.log_abs_det_jacobian(X, t(X)), expected)
    assert t.codomain.check(t(X)).all()


@pytest.mark.parametrize("call, message", [
    (lambda: transforms.CatTransform([EXP], 0, [1, 2]), r"lengths \(2\) must match transforms \(1"),
    (lambda: transforms.CatTransform([3]), "All elements of tseq must be Transform instances"),
    (lambda: transforms.StackTransform([3]), "All elements of tseq must be Transform instances"),
    (lambda: transforms.CatTransform([EXP], 0, [3])(X), r"x.size\(0\) = 2 must equal length 3"),
    (lambda: transforms.CatTransform([EXP], 0, [3]).inv(X), r"y.size\(0\) = 2 must equal length 3"),
    (lambda: transforms.CatTransform([EXP])(torch.tensor(1.0)),
     "dim 0 out of range for tensor with 0 dimensions"),
    (lambda: transforms.StackTransform([EXP])(X),
     r"x.size\(0\) = 2 must equal len\(transforms\) 1"),
    (lambda: transforms.StackTransform([EXP]).inv(X),
     r"y.size\(0\) = 2 must equal len\(transforms\) 1"),
])
def test_wrong_sizes(call, message):
    with pytest.raises(AssertionError, match=message):
        call()
