"""Transforms that take derivatives, against polynomials whose derivatives are known."""

import pytest

import flambeau as torch
from flambeau.func import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp

X = torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64)


def cubes(x):
    return x ** 3


def test_derivatives_of_cubes():
    torch.testing.assert_close(grad(lambda x: cubes(x).sum())(X), 3 * X ** 2)
    torch.testing.assert_close(jacrev(cubes)(X), torch.diag(3 * X ** 2))
    torch.testing.assert_close(jacfwd(cubes)(X), torch.diag(3 * X ** 2))
    torch.testing.assert_close(hessian(lambda x: cubes(x).sum())(X), torch.diag(6 * X))


def test_products_with_vectors():
    v = torch.tensor([2.0, 1.0, -1.0], dtype=torch.float64)
    value, pull = vjp(cubes, X)
    torch.testing.assert_close(value, X ** 3)
    torch.testing.assert_close(pull(v)[0], 3 * X ** 2 * v)
    value, tangent = jvp(cubes, (X,), (v,))
    torch.testing.assert_close(tangent, 3 * X ** 2 * v)
    value, push = linearize(cubes, X)
    torch.testing.assert_close(push(v), tangent)


def test_auxiliary_values_and_several_arguments():
    def f(x, y):
        return (x * y).sum(), x - y

    (gx, gy), (value, aux) = grad_and_value(f, argnums=(0, 1), has_aux=True)(X, 2 * X)
    torch.testing.assert_close(gx, 2 * X)
    torch.testing.assert_close(gy, X)
    torch.testing.assert_close(value, (2 * X ** 2).sum())
    torch.testing.assert_close(aux, -X)


def test_only_a_number_has_a_gradient():
    with pytest.raises(RuntimeError, match="vjp or jacrev"):
        grad(cubes)(X)


def test_jacobians_of_single_numbers():
    x = torch.tensor(0.5)
    for jacobian in (jacrev, jacfwd):
        torch.testing.assert_close(jacobian(torch.sin)(x), x.cos())
        assert jacobian(lambda x: x.expand(2))(x).tolist() == [1, 1]
    torch.testing.assert_close(hessian(torch.sin)(x), -x.sin())
