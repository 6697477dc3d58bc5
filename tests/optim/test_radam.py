"""RAdam."""
import itertools

import numpy as np
import pytest
from optimizer_tests import OptimizerTests, gradient

import flambeau as torch


class TestRAdam(OptimizerTests):
    name = "RAdam"
    state = "step exp_avg exp_avg_sq"
    options = ("lr betas eps weight_decay maximize foreach capturable decoupled_weight_decay "
               "differentiable")
    refused = [
        ({"lr": -1.0}, ValueError, "Invalid learning rate: -1.0"),
        ({"betas": (0.9, 1.0)}, ValueError, "Invalid beta parameter at index 1: 1.0"),
        ({"eps": -1.0}, ValueError, "Invalid epsilon value: -1.0"),
        ({"weight_decay": -1}, ValueError, "Invalid weight_decay value: -1"),
    ]
    formula_options = {"lr": 0.1, "betas": (0.8, 0.9), "eps": 0.01, "weight_decay": 0.2}

    def by_formula(self, x):
        """The variance is rectified once there are enough gradients: from the sixth step on."""
        m = v = 0 * x
        most = 2 / (1 - 0.9) - 1
        for t in itertools.count(1):
            g = gradient(x) + 0.2 * x
            m, v = 0.8 * m + 0.2 * g, 0.9 * v + 0.1 * g * g
            length = most - 2 * t * 0.9**t / (1 - 0.9**t)
            mean, scale = m / (1 - 0.8**t), 1.0
            if length > 5:
                scale = np.sqrt((length - 4) * (length - 2) * most
                                / ((most - 4) * (most - 2) * length))
                scale = scale * np.sqrt(1 - 0.9**t) / (np.sqrt(v) + 0.01)
            x = x - 0.1 * scale * mean
            yield x


def test_the_first_steps_are_those_of_momentum():
    """Before the variance is known, the gradient's size counts."""
    p = torch.zeros(2, requires_grad=True)
    optimizer = torch.optim.RAdam([p], lr=0.5)
    p.grad = torch.tensor([1.0, -100.0])
    optimizer.step()
    assert p.tolist() == pytest.approx([-0.5, 50.0])
