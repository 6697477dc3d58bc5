"""Adafactor."""
import itertools

import numpy as np
import pytest
from optimizer_tests import OptimizerTests, gradient

import flambeau as torch


class TestAdafactor(OptimizerTests):
    name = "Adafactor"
    state = "step row_var col_var"
    options = "lr beta2_decay eps d weight_decay foreach maximize"
    refused = [
        ({"lr": -1.0}, ValueError, "Learning rate should be >= 0 but is: -1.0"),
        ({"eps": (None, -1.0)}, ValueError, "epsilon2 should be >= 0 but is: -1.0"),
        ({"d": 0.5}, ValueError, "Clipping threshold d should be >= 1 but is: 0.5"),
        ({"beta2_decay": 0.5}, ValueError, "beta2_decay should be <= 0 but is: 0.5"),
    ]
    formula_options = {"lr": 0.3, "eps": (1e-10, 1e-3), "d": 1.5, "weight_decay": 0.1}

    def by_formula(self, x):
        rows, columns = np.zeros((2, 1)), np.zeros((1, 2))
        rms = lambda a: np.sqrt((a * a).mean())
        for t in itertools.count(1):
            g, weight = gradient(x), t**-0.8
            size = min(0.3, t**-0.5) * max(1e-3, rms(x))
            rows = (1 - weight) * rows + weight * (g * g).mean(1, keepdims=True)
            columns = (1 - weight) * columns + weight * (g * g).mean(0, keepdims=True)
            update = g / np.sqrt(rows * columns / rows.mean())
            x = (1 - 0.3 * 0.1) * x - size / max(1, rms(update) / 1.5) * update
            yield x


def test_vectors_keep_a_whole_variance():
    p = torch.ones(3, requires_grad=True)
    p.grad = torch.ones(3)
    optimizer = torch.optim.Adafactor([p])
    optimizer.step()
    assert list(optimizer.state[p]) == ["step", "variance"]


def test_means_over_rows_are_contiguous():
    p = torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last).requires_grad_()
    p.grad = torch.ones_like(p)
    optimizer = torch.optim.Adafactor([p])
    optimizer.step()
    state = optimizer.state[p]
    assert state["row_var"].shape == (2, 3, 4, 1) and state["row_var"].is_contiguous()
    assert state["col_var"].shape == (2, 3, 1, 5) and state["col_var"].is_contiguous()


def test_complex_parameters_are_refused():
    p = torch.ones(2, dtype=torch.complex64, requires_grad=True)
    p.grad = torch.ones_like(p)
    with pytest.raises(RuntimeError, match="Adafactor does not support complex parameters"):
        torch.optim.Adafactor([p]).step()
