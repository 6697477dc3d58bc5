"""Stochastic gradient descent."""
import pytest
from optimizer_tests import OptimizerTests, gradient

import flambeau as torch


class TestSGD(OptimizerTests):
    name = "SGD"
    options = "lr momentum dampening weight_decay nesterov maximize foreach differentiable fused"
    refused = [
        ({"lr": -1.0}, ValueError, "Invalid learning rate: -1.0"),
        ({"lr": torch.ones(2)}, ValueError, "Tensor lr must be 1-element"),
        ({"momentum": -0.5}, ValueError, "Invalid momentum value: -0.5"),
        ({"nesterov": True}, ValueError, "Nesterov momentum requires a momentum and zero"),
        ({"fused": True, "foreach": True}, RuntimeError, "`fused` and `foreach` cannot be"),
        ({"fused": True, "differentiable": True}, RuntimeError, "`fused` does not support"),
    ]
    formula_options = {"lr": 0.1, "momentum": 0.9, "dampening": 0.2, "weight_decay": 0.3}

    def by_formula(self, x):
        b = None
        while True:
            g = gradient(x) + 0.3 * x
            b = g if b is None else 0.9 * b + 0.8 * g
            x = x - 0.1 * b
            yield x


def test_differentiable_through_the_learning_rate():
    lr = torch.tensor(0.1, dtype=torch.float64, requires_grad=True)
    p = torch.tensor([1.0], dtype=torch.float64, requires_grad=True).clone()
    optimizer = torch.optim.SGD([p], lr=lr, differentiable=True)
    p.grad = torch.tensor([3.0], dtype=torch.float64)
    optimizer.step()
    p.sum().backward()
    assert lr.grad.item() == -3.0


def test_sparse_gradients_change_their_rows_only():
    p = torch.ones(3, 2, requires_grad=True)
    optimizer = torch.optim.SGD([p], lr=0.5)
    p.grad = torch.sparse_coo_tensor([[1, 1]], [[1.0, 2.0], [3.0, 4.0]], (3, 2))
    optimizer.step()
    assert p.tolist() == [[1, 1], [-1, -2], [1, 1]]


def test_momentum_begins_as_the_gradient_and_belongs_to_nobody_else():
    p = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([p], lr=0.5, momentum=0.5)
    p.grad = torch.ones(2)
    optimizer.step()
    p.grad.zero_()
    assert optimizer.state[p]["momentum_buffer"].tolist() == [1.0, 1.0]


def test_both_lists_and_derivatives():
    grad = torch.tensor([2.0, 3.0], requires_grad=True)
    p = torch.ones(2, requires_grad=True).clone()
    p.grad = grad
    torch.optim.SGD([p], lr=0.25, foreach=True, differentiable=True).step()
    p.sum().backward()
    assert grad.grad.tolist() == [-0.25, -0.25]


def test_a_differentiable_step_with_momentum_depends_on_the_first_gradient():
    def stepped(start, *gradients):
        p = start.clone()
        optimizer = torch.optim.SGD([p], lr=0.1, momentum=0.9, differentiable=True)
        for p.grad in gradients:
            optimizer.step()
        return p

    inputs = [torch.randn(3, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    assert torch.autograd.gradcheck(stepped, inputs)
    grads = torch.autograd.grad(stepped(*inputs).sum(), inputs)
    assert [g[0].item() for g in grads] == pytest.approx([1, -0.1 * 1.9, -0.1])
