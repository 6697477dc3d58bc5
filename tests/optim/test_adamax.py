"""Adamax."""
import itertools

import numpy as np
from optimizer_tests import OptimizerTests, gradient

import flambeau as torch


class TestAdamax(OptimizerTests):
    name = "Adamax"
    state = "step exp_avg exp_inf"
    options = "lr betas eps weight_decay foreach maximize differentiable capturable"
    refused = [
        ({"lr": -1.0}, ValueError, "Invalid learning rate: -1.0"),
        ({"betas": (0.9, 1.0)}, ValueError, "Invalid beta parameter at index 1: 1.0"),
        ({"eps": -1.0}, ValueError, "Invalid epsilon value: -1.0"),
        ({"weight_decay": -1}, ValueError, "Invalid weight_decay value: -1"),
    ]
    formula_options = {"lr": 0.1, "betas": (0.8, 0.9), "weight_decay": 0.3, "eps": 1e-3}

    def by_formula(self, x):
        m = u = 0 * x
        for t in itertools.count(1):
            g = gradient(x) + 0.3 * x
            m, u = 0.8 * m + 0.2 * g, np.maximum(0.9 * u, abs(g) + 1e-3)
            x = x - 0.1 / (1 - 0.8**t) * m / u
            yield x


def test_the_largest_gradient_fades():
    p = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.Adamax([p], betas=(0.5, 0.5), eps=0)
    for size, wanted in ((8.0, 8.0), (1.0, 4.0), (3.0, 3.0)):
        p.grad = torch.tensor([size])
        optimizer.step()
        assert optimizer.state[p]["exp_inf"].item() == wanted
