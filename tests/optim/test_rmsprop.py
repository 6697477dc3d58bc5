"""RMSprop."""
import numpy as np
import pytest
from optimizer_tests import OptimizerTests, gradient

import flambeau as torch


class TestRMSprop(OptimizerTests):
    name = "RMSprop"
    state = "step square_avg"
    options = ("lr momentum alpha eps centered weight_decay capturable foreach maximize "
               "differentiable")
    refused = [
        ({"lr": -1.0}, ValueError, "Invalid learning rate: -1.0"),
        ({"alpha": -1.0}, ValueError, "Invalid alpha value: -1.0"),
        ({"momentum": -1.0}, ValueError, "Invalid momentum value: -1.0"),
    ]
    formula_options = {"lr": 0.1, "alpha": 0.9, "eps": 0.01, "momentum": 0.5, "centered": True}

    def by_formula(self, x):
        v = mean = b = 0 * x
        while True:
            g = gradient(x)
            v, mean = 0.9 * v + 0.1 * g * g, 0.9 * mean + 0.1 * g
            b = 0.5 * b + g / (np.sqrt(v - mean * mean) + 0.01)
            x = x - 0.1 * b
            yield x


@pytest.mark.parametrize("options, names", [
    ({"momentum": 0.5}, "step square_avg momentum_buffer"),
    ({"centered": True}, "step square_avg grad_avg"),
    ({"momentum": 0.5, "centered": True}, "step square_avg momentum_buffer grad_avg")])
def test_state_depends_on_the_options(options, names):
    p = torch.ones(2, requires_grad=True)
    p.grad = torch.ones(2)
    optimizer = torch.optim.RMSprop([p], **options)
    optimizer.step()
    assert " ".join(optimizer.state[p]) == names
