"""NAdam."""
import itertools

import numpy as np
from optimizer_tests import OptimizerTests, gradient

import flambeau as torch


class TestNAdam(OptimizerTests):
    name = "NAdam"
    state = "step mu_product exp_avg exp_avg_sq"
    options = ("lr betas eps weight_decay momentum_decay decoupled_weight_decay maximize foreach "
               "capturable differentiable")
    refused = [
        ({"lr": -1.0}, ValueError, "Invalid learning rate: -1.0"),
        ({"betas": (0.9, 1.0)}, ValueError, "Invalid beta parameter at index 1: 1.0"),
        ({"eps": -1.0}, ValueError, "Invalid epsilon value: -1.0"),
        ({"weight_decay": -1}, ValueError, "Invalid weight_decay value: -1"),
        ({"momentum_decay": -1}, ValueError, "Invalid momentum_decay value: -1"),
    ]
    formula_rtol = 1e-6
    formula_options = {"lr": 0.1, "betas": (0.8, 0.95), "eps": 0.01, "momentum_decay": 0.1,
                       "weight_decay": 0.5, "decoupled_weight_decay": True}

    def by_formula(self, x):
        m = v = 0 * x
        product = 1.0
        mu = lambda t: 0.8 * (1 - 0.5 * 0.96 ** (t * 0.1))
        for t in itertools.count(1):
            g = gradient(x)
            x = (1 - 0.1 * 0.5) * x
            m, v = 0.8 * m + 0.2 * g, 0.95 * v + 0.05 * g * g
            product *= mu(t)
            ahead = (1 - mu(t)) / (1 - product) * g + mu(t + 1) / (1 - product * mu(t + 1)) * m
            x = x - 0.1 * ahead / (np.sqrt(v / (1 - 0.95**t)) + 0.01)
            yield x


def test_old_products_that_are_numbers_become_tensors():
    p = torch.ones(2, requires_grad=True)
    p.grad = torch.ones(2)
    optimizer = torch.optim.NAdam([p])
    optimizer.step()
    saved = optimizer.state_dict()
    saved["state"][0].update(mu_product=0.5, step=3.0)
    optimizer.load_state_dict(saved)
    state = optimizer.state[p]
    assert (state["mu_product"].item(), state["step"].item()) == (0.5, 3.0)
    assert state["mu_product"].dtype is torch.float32
