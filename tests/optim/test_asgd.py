"""Averaged gradient descent."""
import itertools

import pytest
from optimizer_tests import OptimizerTests, gradient

import flambeau as torch


class TestASGD(OptimizerTests):
    name = "ASGD"
    state = "step eta mu ax"
    options = "lr lambd alpha t0 weight_decay foreach maximize differentiable capturable"
    refused = [
        ({"lr": -1.0}, ValueError, "Invalid learning rate: -1.0"),
        ({"weight_decay": -1.0}, ValueError, "Invalid weight_decay value: -1.0"),
    ]
    formula_rtol = 1e-6
    formula_options = {"lr": 0.1, "lambd": 0.2, "alpha": 0.5, "t0": 1, "weight_decay": 0.3}

    def by_formula(self, x):
        eta = 0.1
        for t in itertools.count(1):
            g = gradient(x) + 0.3 * x
            x = (1 - 0.2 * eta) * x - eta * g
            eta = 0.1 / (1 + 0.2 * 0.1 * t) ** 0.5
            yield x


def test_the_mean_begins_after_t0():
    p = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.ASGD([p], lr=1.0, lambd=0.0, t0=2)
    places = []
    for _ in range(6):
        p.grad = -torch.ones(1, dtype=torch.float64)
        optimizer.step()
        places.append(p.item())
    assert places == [1, 2, 3, 4, 5, 6]
    assert optimizer.state[p]["ax"].item() == pytest.approx((4 + 5 + 6) / 3)
