"""In-place ops differentiated twice, in each order of modes, against differences of gradients."""
import pytest

import flambeau as torch
import flambeau.autograd.forward_ad as fwAD
from flambeau.func import grad, hessian, jacfwd, jacrev, jvp, vmap

A = torch.tensor([0.3, 0.8, 0.5], dtype=torch.float64)
V = torch.tensor([1.0, 2.0, -1.0], dtype=torch.float64)
WRITES = {
    **{name: lambda y, x, name=name: getattr(y, name)(x) for name in (
        "mul_", "div_", "atan2_", "xlogy_", "hypot_", "pow_", "sub_", "copy_")},
    **{name: lambda y, x, name=name: getattr(y, name)() for name in (
        "sin_", "exp_", "sqrt_", "tanh_", "sigmoid_", "log_", "reciprocal_", "square_")},
    "cumsum_": lambda y, x: y.cumsum_(0),
    "addcmul_": lambda y, x: y.addcmul_(x, x),
    "clamp_": lambda y, x: y.clamp_(1.3, 1.9),
    "masked_fill_": lambda y, x: y.masked_fill_(x > 0.6, 2.0),
    "index_add_": lambda y, x: y.index_add_(0, torch.tensor([0]), x[:1]),
}


def whole(write, x):
    y = x.sin() + 1.2
    write(y, x)
    return (y * y).sum()


def through_a_view(write, x):
    y = x.sin() + 1.2
    write(y[1:], x[1:])
    return (y * y).sum()


def seen_by_an_earlier_view(write, x):
    y = x.sin() + 1.2
    z = y[1:]
    write(y, x)
    return (z * z * y[:2]).sum()


def eager(f, x):
    with fwAD.dual_level():
        dual = fwAD.make_dual(x.clone().requires_grad_(), V)
        gradient, = torch.autograd.grad(f(dual), dual, create_graph=True)
        return fwAD.unpack_dual(gradient).tangent


@pytest.mark.parametrize("form", [whole, through_a_view, seen_by_an_earlier_view])
@pytest.mark.parametrize("name", WRITES)
def test_second_derivatives(name, form):
    def f(x):
        return form(WRITES[name], x)

    rows = torch.eye(3, dtype=torch.float64)
    step = 1e-5
    exact = torch.stack([(grad(f)(A + step * e) - grad(f)(A - step * e)) / (2 * step)
                         for e in rows], 1)
    for found, expected in (
            (jvp(grad(f), (A,), (V,))[1], exact @ V), (eager(f, A), exact @ V),
            (jacfwd(jacrev(f))(A), exact), (jacrev(jacfwd(f))(A), exact), (hessian(f)(A), exact),
            (vmap(lambda v: jvp(grad(f), (A,), (v,))[1])(rows), exact.T),
            (vmap(grad(f))(A[None])[0], grad(f)(A))):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def filled(x):
    """Parts of a tensor that depends on nothing are written, then the whole, then a view."""
    y = torch.zeros(4, dtype=x.dtype)
    y[1] = x[0] * x[1]
    y[2:] = x[:2] ** 2
    y.mul_(x[[0, 1, 2, 0]])
    y[0].add_(x[2] ** 3)
    y.view(2, 2)[:, 1].mul_(x[:2])
    return y.sin().sum()


def partly_written(x):
    y = x * 1
    y[1] = x[0] * x[1]
    y[1:].mul_(x[:2])
    return y.sin().sum()


def reshaped_in_place(x):
    y = x * 2
    y.unsqueeze_(0).mul_(x)
    y.transpose_(0, 1)
    y.squeeze_(1).add_(x)
    return y.sin().sum()


WRITERS = {
    filled: lambda x: torch.stack([x[2] ** 3, x[0] ** 2 * x[1] ** 2, x[0] ** 2 * x[2],
                                   x[1] ** 3 * x[0]]).sin().sum(),
    partly_written: lambda x: torch.stack([x[0], x[0] ** 2 * x[1], x[2] * x[1]]).sin().sum(),
    reshaped_in_place: lambda x: (2 * x * x + x).sin().sum(),
}
ORDERS = {
    "hessian": lambda f: hessian(f)(A), "reverse over reverse": lambda f: jacrev(jacrev(f))(A),
    "forward over forward": lambda f: jacfwd(jacfwd(f))(A),
    "reverse over forward": lambda f: jacrev(jacfwd(f))(A),
    "third": lambda f: jacfwd(hessian(f))(A),
    "around a hessian": lambda f: grad(lambda x: hessian(f)(x).sin().sum())(A),
    "functional": lambda f: torch.autograd.functional.hessian(f, A, vectorize=True),
    "functional, forward": lambda f: torch.autograd.functional.hessian(
        f, A, vectorize=True, outer_jacobian_strategy="forward-mode"),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("writer", WRITERS)
def test_writers_as_what_they_compute(writer, order):
    torch.testing.assert_close(ORDERS[order](writer), ORDERS[order](WRITERS[writer]))


@pytest.mark.parametrize("transform", [lambda f: f, grad, jacfwd, hessian])
def test_shapes_of_slices_change_in_place(transform):
    rows = torch.stack([A, V, A * V], 1)
    found = vmap(transform(reshaped_in_place), 1)(rows)
    torch.testing.assert_close(found, vmap(transform(WRITERS[reshaped_in_place]), 1)(rows))
