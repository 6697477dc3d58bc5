"""Rprop."""
import numpy as np
from optimizer_tests import OptimizerTests, gradient

import flambeau as torch


class TestRprop(OptimizerTests):
    name = "Rprop"
    state = "step prev step_size"
    options = "lr etas step_sizes foreach maximize differentiable capturable"
    refused = [
        ({"lr": -1.0}, ValueError, "Invalid learning rate: -1.0"),
        ({"etas": (1.2, 0.5)}, ValueError, "Invalid eta values: 1.2, 0.5"),
    ]
    formula_options = {"lr": 0.4, "etas": (0.5, 1.5), "step_sizes": (0.1, 0.5)}

    def by_formula(self, x):
        before, size = 0 * x, 0 * x + 0.4
        while True:
            g = gradient(x)
            sign = np.sign(before * g)
            size = np.clip(size * np.choose(sign.astype(int) + 1, [0.5, 1, 1.5]), 0.1, 0.5)
            g = np.where(sign < 0, 0, g)
            x = x - np.sign(g) * size
            before = g
            yield x


def test_only_signs_count():
    p = torch.zeros(3, requires_grad=True)
    optimizer = torch.optim.Rprop([p], lr=0.5)
    p.grad = torch.tensor([1e-9, -1e9, 0.0])
    optimizer.step()
    assert p.tolist() == [-0.5, 0.5, 0.0]


def test_sizes_lie_in_memory_as_the_gradient_does():
    p = torch.ones(2, 3, 2, 2).to(memory_format=torch.channels_last).requires_grad_()
    for grad in (torch.ones(2, 3, 2, 2), torch.ones_like(p)):
        p.grad = None
        p.grad = grad
        optimizer = torch.optim.Rprop([p])
        optimizer.step()
        assert optimizer.state[p]["prev"].stride() == p.stride()
        assert optimizer.state[p]["step_size"].stride() == grad.stride()
