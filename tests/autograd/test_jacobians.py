"""Jacobians by finite differences, reverse and forward mode: all the same."""
import pytest

import flambeau as torch
from flambeau.autograd import _jacobians as J

W = torch.tensor([[1.0, 2.0], [-0.5, 3.0], [0.25, 1.0]], dtype=torch.float64)
EPS = 1e-6


def function(x):
    return (W @ x) ** 2


def exact(x):
    return (2 * (W @ x)[:, None] * W).mT.detach()


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_columns(dtype):
    x = torch.tensor([0.5, -1.0], dtype=dtype, requires_grad=True)
    run = lambda v: function(v) if dtype is torch.float64 else v * v
    y = run(x)
    numerical, = J.numerical_columns(lambda: (run(x),), x, (y,), EPS)
    analytical, sizes, types = J.analytical_columns(J.pullback(y, (x,)), (x,), y)
    assert sizes and types
    if dtype is torch.float64:
        torch.testing.assert_close(numerical, exact(x), rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(analytical[0], exact(x))
        forward, = J.forward_columns(run, (x,), 0, (y,))
        torch.testing.assert_close(forward, exact(x))


def test_along_a_direction():
    x = torch.tensor([0.5, -1.0], dtype=torch.float64, requires_grad=True)
    u, v = torch.tensor([0.6, 0.8]).double(), torch.tensor([1.0, -1.0, 2.0]).double()
    y = function(x)
    numerical, = J.numerical_along(lambda: (function(x),), x, (y,), EPS, u)
    torch.testing.assert_close(numerical, u @ exact(x), rtol=1e-6, atol=1e-6)
    found, _, _ = J.analytical_along(J.pullback(y, (x,)), (x,), v, (u,))
    torch.testing.assert_close(found[0], u @ exact(x) @ v)
    torch.testing.assert_close(J.forward_along(function, (x,), 0, (y,), u)[0], u @ exact(x))


def test_the_input_is_put_back_even_after_an_error():
    x = torch.tensor([0.5, -1.0], dtype=torch.float64, requires_grad=True)

    def fail():
        raise ValueError
    for run in (lambda: (function(x),), fail):
        try:
            J.Perturbed(run, x, 0.1).derivative(1, (0,))
        except ValueError:
            pass
        assert x.tolist() == [0.5, -1.0]


@pytest.mark.parametrize("layout", ["coo", "csr", "csc"])
def test_elements_that_sparse_tensors_store(layout):
    dense = torch.tensor([[0.0, 1.0], [2.0, 3.0]])
    x = getattr(dense, f"to_sparse_{layout}")() if layout != "coo" else dense.to_sparse().coalesce()
    gradient = torch.tensor([[5.0, 6.0], [7.0, 8.0]])
    order = [6.0, 7.0, 8.0] if layout != "csc" else [7.0, 6.0, 8.0]
    assert J.stored(gradient, x).tolist() == order and J.elements(x).numel() == 3


def test_outputs_that_change_shape_are_refused():
    x = torch.tensor([0.0, 1.0], dtype=torch.float64, requires_grad=True)
    with pytest.raises(AssertionError, match="outputs with the same shape when inputs are pertur"):
        J.numerical_columns(lambda: (x[x > 0],), x, (x[x > 0],), 0.1)
