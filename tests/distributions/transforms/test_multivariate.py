"""Transforms of vectors and matrices."""

import pytest
from transform_cases import check_bijection, check_determinant

import flambeau as torch
from flambeau.distributions import constraints, transforms


def test_correlations():
    t = transforms.CorrCholeskyTransform()
    check_bijection(t)
    check_determinant(t, lambda y: y[torch.ones(3, 3).tril(-1).bool()])
    y = t(torch.zeros(6))
    assert torch.equal(y, torch.eye(4))
    assert constraints.corr_cholesky.check(t(torch.linspace(-2, 2, 6))).item()
    with pytest.raises(ValueError, match="Input is not a flattened lower-diagonal number"):
        t.forward_shape((4,))
    with pytest.raises(ValueError, match="Input is not square"):
        t.inverse_shape((2, 3))


def test_stick_breaking():
    t = transforms.StickBreakingTransform()
    check_bijection(t)
    check_determinant(t, lambda y: y[:-1])
    torch.testing.assert_close(t(torch.zeros(3)), torch.full((4,), 0.25))
    assert t.forward_shape((2, 3)) == (2, 4) and t.inverse_shape((2, 4)) == (2, 3)


def test_stick_breaking_of_large_numbers():
    """Fractions are kept off 0 and 1, so that something is left and the inverse is finite."""
    t = transforms.StickBreakingTransform()
    y = t(torch.tensor([-300.0, 0.0, 300.0], requires_grad=True))
    assert (y > 0).all() and y.sum().item() == pytest.approx(1.0)
    assert t.inv(y).isfinite().all()


def test_softmax():
    t = transforms.SoftmaxTransform()
    x = torch.tensor([[0.5, -1.0, 300.0], [0.0, 0.0, 0.0]])
    torch.testing.assert_close(t(x), torch.softmax(x, -1))
    torch.testing.assert_close(t(t.inv(t(x))), t(x))
    assert not t.bijective and t.domain.event_dim == 1
    with pytest.raises(ValueError, match="Too few dimensions on input"):
        t.forward_shape(())


def test_reshape():
    t = transforms.ReshapeTransform((3,), (1, 3))
    check_bijection(t)
    check_determinant(t)
    assert t(torch.zeros(5, 3)).shape == (5, 1, 3)
    assert (t.domain.event_dim, t.codomain.event_dim) == (1, 2)
    with pytest.raises(ValueError, match="in_shape, out_shape have different numbers of elements"):
        transforms.ReshapeTransform((2,), (3,))
    with pytest.raises(ValueError, match="Too few dimensions on input"):
        t.forward_shape(())
    with pytest.raises(ValueError, match="Shape mismatch: expected"):
        t.forward_shape((4,))


@pytest.mark.parametrize("t, constraint", [
    (transforms.LowerCholeskyTransform(), constraints.lower_cholesky),
    (transforms.PositiveDefiniteTransform(), constraints.positive_definite)])
def test_matrices(t, constraint):
    x = torch.tensor([[[0.3, 0.9], [-0.4, 0.1]], [[0.0, 0.0], [0.0, 0.0]]], dtype=torch.float64)
    y = t(x)
    assert constraint.check(y).all()
    torch.testing.assert_close(y[1], torch.eye(2, dtype=torch.float64))
    torch.testing.assert_close(t.inv(y), x.tril())
    assert t == type(t)() and t.domain.event_dim == 2
