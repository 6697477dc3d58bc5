"""Adagrad."""
import itertools

import numpy as np
import pytest
from optimizer_tests import OptimizerTests, gradient

import flambeau as torch


class TestAdagrad(OptimizerTests):
    name = "Adagrad"
    state = "step sum"
    options = ("lr lr_decay eps weight_decay initial_accumulator_value foreach maximize "
               "differentiable fused")
    refused = [
        ({"lr": -1.0}, ValueError, "Invalid learning rate: -1.0"),
        ({"lr_decay": -1}, ValueError, "Invalid lr_decay value: -1"),
        ({"initial_accumulator_value": -1}, ValueError,
         "Invalid initial_accumulator_value value: -1"),
    ]
    formula_options = {"lr": 0.3, "lr_decay": 0.5, "initial_accumulator_value": 0.2, "eps": 0.01}

    def by_formula(self, x):
        total = 0 * x + 0.2
        for t in itertools.count(1):
            g = gradient(x)
            total = total + g * g
            x = x - 0.3 / (1 + (t - 1) * 0.5) * g / (np.sqrt(total) + 0.01)
            yield x


def test_state_is_there_before_the_first_step():
    p = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.Adagrad([p], initial_accumulator_value=0.5)
    assert optimizer.state[p]["sum"].tolist() == [0.5, 0.5]
    optimizer.share_memory()
    assert optimizer.state[p]["sum"].is_shared() and not optimizer.state[p]["step"].is_shared()


def test_sparse_gradients_step_as_dense_ones_do():
    one, other = (torch.ones(3, 2, dtype=torch.float64, requires_grad=True) for _ in range(2))
    optimizers = [torch.optim.Adagrad([p], lr=0.5) for p in (one, other)]
    for rows in ([0, 2, 0], [1, 2, 2]):
        values = torch.arange(1.0, 7.0, dtype=torch.float64).reshape(3, 2)
        one.grad = torch.sparse_coo_tensor([rows], values, (3, 2))
        other.grad = one.grad.to_dense()
        for optimizer in optimizers:
            optimizer.step()
    torch.testing.assert_close(one, other)


def test_decay_needs_dense_gradients():
    p = torch.ones(3, requires_grad=True)
    p.grad = torch.sparse_coo_tensor([[1]], [1.0], (3,))
    with pytest.raises(RuntimeError, match="weight_decay option is not compatible with sparse"):
        torch.optim.Adagrad([p], weight_decay=0.1).step()


def test_fused_takes_dense_gradients_of_reals():
    sparse, number = torch.ones(3, requires_grad=True), torch.ones(3)
    sparse.grad = torch.sparse_coo_tensor([[1]], [1.0], (3,))
    number.grad = torch.ones(3)
    pair = torch.ones(2, dtype=torch.complex64)
    pair.grad = torch.ones(2, dtype=torch.complex64)
    for params in ([sparse], [number, pair]):
        with pytest.raises(RuntimeError, match="`fused` does not support sparse grad or complex"):
            torch.optim.Adagrad(params, fused=True).step()
