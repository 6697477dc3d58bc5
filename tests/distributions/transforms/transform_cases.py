"""Transforms of every kind, and what holds for all bijections."""

import flambeau as torch

X = torch.tensor([[0.3, 0.2, 0.7], [0.1, 0.5, 0.6]], dtype=torch.float64)


def check_bijection(t):
    """Assert that the inverse undoes the transform, and that shapes are foretold."""
    y = t(X)
    torch.testing.assert_close(t.inv(y), X, rtol=0, atol=1e-9)
    assert tuple(t.forward_shape(X.shape)) == tuple(y.shape)
    assert tuple(t.inverse_shape(y.shape)) == tuple(X.shape)
    assert t.inv.inv is t and t.bijective and t.inv.bijective
    jacobian = t.log_abs_det_jacobian(X, y)
    torch.testing.assert_close(t.inv.log_abs_det_jacobian(y, X), -jacobian)
    assert torch.equal(t.with_cache()(X), y)


def check_determinant(t, entries=lambda y: y.reshape(-1)):
    """Assert that the Jacobian's determinant is that of derivatives of the `entries` of y."""
    x = X[0]
    matrix = torch.autograd.functional.jacobian(lambda x: entries(t(x)), x)
    expected = torch.linalg.slogdet(matrix).logabsdet
    torch.testing.assert_close(t.log_abs_det_jacobian(x, t(x)).sum(), expected)


