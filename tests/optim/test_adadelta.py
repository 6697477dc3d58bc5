"""Adadelta."""
import numpy as np
import pytest
from optimizer_tests import OptimizerTests, gradient

import flambeau as torch


class TestAdadelta(OptimizerTests):
    name = "Adadelta"
    state = "step square_avg acc_delta"
    options = "lr rho eps weight_decay maximize capturable foreach differentiable"
    refused = [
        ({"lr": -1.0}, ValueError, "Invalid learning rate: -1.0"),
        ({"rho": 2.0}, ValueError, "Invalid rho value: 2.0"),
        ({"eps": -1.0}, ValueError, "Invalid epsilon value: -1.0"),
    ]
    formula_options = {"lr": 0.5, "rho": 0.8, "eps": 1e-3, "weight_decay": 0.1}

    def by_formula(self, x):
        v = u = 0 * x
        while True:
            g = gradient(x) + 0.1 * x
            v = 0.8 * v + 0.2 * g * g
            delta = np.sqrt(u + 1e-3) / np.sqrt(v + 1e-3) * g
            u = 0.8 * u + 0.2 * delta * delta
            x = x - 0.5 * delta
            yield x


def test_sparse_gradients_are_refused():
    p = torch.ones(3, requires_grad=True)
    p.grad = torch.sparse_coo_tensor([[1]], [1.0], (3,))
    with pytest.raises(RuntimeError, match="Adadelta does not support sparse gradients"):
        torch.optim.Adadelta([p]).step()
