"""Jacobians, Hessians and their products with vectors."""
import pytest

import flambeau as torch
from flambeau.autograd import functional as AF

X = torch.tensor([1.0, 2.0], dtype=torch.float64)
Y = torch.tensor([3.0, 4.0, 5.0], dtype=torch.float64)


def both(x, y):
    return x.prod() * y, (x**2).sum()


WAYS = [{}, {"vectorize": True}, {"vectorize": True, "strategy": "forward-mode"}]


@pytest.mark.parametrize("way", WAYS)
def test_jacobian(way):
    torch.testing.assert_close(AF.jacobian(torch.exp, X, **way), torch.diag(X.exp()))
    rows = AF.jacobian(both, (X, Y), **way)
    expected = ((torch.outer(Y, X.flip(0)), 2 * torch.eye(3).double()),
                (2 * X, torch.zeros(3).double()))
    torch.testing.assert_close(rows, expected)
    matrix = torch.ones(2, 3, dtype=torch.float64)
    assert AF.jacobian(lambda m: m.sum(0), matrix, **way).shape == (3, 2, 3)


@pytest.mark.parametrize("way", [{}, {"vectorize": True},
                                 {"vectorize": True, "outer_jacobian_strategy": "forward-mode"}])
def test_hessian(way):
    torch.testing.assert_close(AF.hessian(lambda x: (x**3).sum(), X, **way), torch.diag(6 * X))
    rows = AF.hessian(lambda x, y: x.sum() * (y**2).sum(), (X, Y), **way)
    torch.testing.assert_close(rows[0][1], (2 * Y).expand(2, 3))
    torch.testing.assert_close(rows[1][1], 6 * torch.eye(3).double())
    torch.testing.assert_close(rows[0][0], torch.zeros(2, 2).double())


def test_products_with_the_jacobian():
    v, w = torch.tensor([0.5, -1.0]).double(), torch.tensor([1.0, 2.0, -1.0]).double()
    matrix = torch.arange(6.0, dtype=torch.float64).reshape(3, 2)

    def function(x):
        return (matrix @ x) ** 2
    jacobian = AF.jacobian(function, X)
    value, slope = AF.jvp(function, X, v)
    torch.testing.assert_close((value, slope), (function(X), jacobian @ v))
    torch.testing.assert_close(AF.vjp(function, X, w)[1], w @ jacobian)


def test_products_with_the_hessian():
    v = (torch.tensor([0.5, -1.0]).double(), torch.tensor([1.0, 2.0, -1.0]).double())

    def function(x, y):
        return (x.exp().sum() * y**2).sum()
    rows = AF.hessian(function, (X, Y))
    expected = tuple(rows[i][0] @ v[0] + rows[i][1] @ v[1] for i in range(2))
    for product in (AF.hvp, AF.vhp):
        value, found = product(function, (X, Y), v)
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(value, function(X, Y))


@pytest.mark.parametrize("create_graph", [False, True])
def test_results_carry_a_graph_if_asked(create_graph):
    x = X.clone().requires_grad_()
    square = lambda x: (x**3).sum()
    for found in (AF.jacobian(square, x, create_graph=create_graph),
                  AF.vjp(square, x, create_graph=create_graph)[1],
                  AF.vhp(square, x, torch.ones_like(x), create_graph=create_graph)[1]):
        assert found.requires_grad is create_graph
    assert x.grad is None


@pytest.mark.parametrize("call, message", [
    (lambda: AF.jacobian(lambda x: X * 2, X, strict=True), "does not require gradients"),
    (lambda: AF.vjp(lambda x, y: x.sum(), (X, Y), strict=True), "is independent of input 1"),
    (lambda: AF.hessian(lambda x: (3 * x).sum(), X, strict=True), "is independent of the input"),
    (lambda: AF.vhp(lambda x: X * 2, X, torch.ones_like(X), strict=True),
     "does not require gradients"),
    (lambda: AF.vhp(lambda x, y: x.sum(), (X, Y), (X, Y), strict=True),
     "respect to input 0 is independent of the input"),
    (lambda: AF.jacobian(torch.exp, X, strict=True, vectorize=True),
     "`strict=True` and `vectorized=True` are not supported together"),
    (lambda: AF.hessian(torch.exp, X, strict=True, vectorize=True),
     "should contain a single element"),
])
def test_strict(call, message):
    with pytest.raises(RuntimeError, match=message):
        call()


@pytest.mark.parametrize("call, error, message", [
    (lambda: AF.jacobian(torch.exp, 3), TypeError, "The inputs given to jacobian must be either"),
    (lambda: AF.jacobian(lambda x: 3, X), TypeError, "The outputs of the user-provided function"),
    (lambda: AF.vjp(torch.exp, X), RuntimeError, "The vector v can only be None if the user-prov"),
    (lambda: AF.vjp(torch.exp, X, torch.ones(4)), RuntimeError, "^v has invalid size: should be"),
    (lambda: AF.vjp(lambda x: (x,), X, torch.ones(4)), RuntimeError, "Entry 0 in v has invalid"),
    (lambda: AF.jvp(both, (X, Y), (X,)), RuntimeError, "v is a tuple of invalid length: should be"),
    (lambda: AF.vhp(torch.exp, X, X), RuntimeError, "should contain a single element"),
    (lambda: AF.vhp(lambda x: (x.sum(),), X, X), RuntimeError, "should return a single Tensor"),
    (lambda: AF.jacobian(torch.exp, X, strategy="forward-mode"), NotImplementedError,
     "implemented for `vectorize=True`"),
    (lambda: AF.jacobian(torch.exp, X, strategy="sideways"), AssertionError,
     'Expected strategy to be either "forward-mode" or "reverse-mode"'),
])
def test_misuse(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_no_grad_around():
    with torch.no_grad():
        assert AF.jacobian(torch.exp, X).shape == (2, 2)
        assert AF.jvp(torch.exp, X, X)[1].shape == (2,)
