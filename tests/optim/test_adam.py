"""Adam and AdamW."""
import itertools

import numpy as np
import pytest
from optimizer_tests import OptimizerTests, gradient

import flambeau as torch


class TestAdam(OptimizerTests):
    name = "Adam"
    state = "step exp_avg exp_avg_sq"
    options = ("lr betas eps weight_decay amsgrad maximize foreach capturable differentiable fused "
               "decoupled_weight_decay")
    refused = [
        ({"lr": -1.0}, ValueError, "Invalid learning rate: -1.0"),
        ({"betas": (0.9, 1.0)}, ValueError, "Invalid beta parameter at index 1: 1.0"),
        ({"eps": -1.0}, ValueError, "Invalid epsilon value: -1.0"),
        ({"weight_decay": -1}, ValueError, "Invalid weight_decay value: -1"),
        ({"lr": torch.ones(()), "foreach": True}, ValueError,
         "lr as a Tensor is not supported for capturable=False and foreach=True"),
        ({"betas": (torch.tensor(0.9), 0.9)}, ValueError,
         "betas must be either both floats or both Tensors"),
    ]
    formula_options = {"lr": 0.1, "betas": (0.8, 0.95), "eps": 0.01, "amsgrad": True,
                       "maximize": True}
    decay = 0.0

    def by_formula(self, x):
        m = v = most = 0 * x
        for t in itertools.count(1):
            g = -gradient(x)
            x = (1 - 0.1 * self.decay) * x
            m, v = 0.8 * m + 0.2 * g, 0.95 * v + 0.05 * g * g
            most = np.maximum(most, v)
            x = x - 0.1 * m / (1 - 0.8**t) / (np.sqrt(most / (1 - 0.95**t)) + 0.01)
            yield x


class TestAdamW(TestAdam):
    name = "AdamW"
    formula_options = {**TestAdam.formula_options, "weight_decay": 0.5}
    decay = 0.5


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e6])
def test_the_first_step_is_as_long_as_the_learning_rate(size):
    p = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([p], lr=0.25, eps=0)
    p.grad = size * torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64)
    optimizer.step()
    assert p.tolist() == pytest.approx([-0.25, 0.25, -0.25])


def test_amsgrad_keeps_the_largest():
    p = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.Adam([p], amsgrad=True)
    for size in (3.0, 0.0):
        p.grad = torch.full((2,), size)
        optimizer.step()
    state = optimizer.state[p]
    assert list(state) == ["step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"]
    assert (state["max_exp_avg_sq"] > state["exp_avg_sq"]).all()


def test_decay_is_decoupled_in_adamw_whatever_a_checkpoint_says():
    optimizer = torch.optim.AdamW([torch.ones(1, requires_grad=True)])
    saved = optimizer.state_dict()
    saved["param_groups"][0]["decoupled_weight_decay"] = False
    optimizer.load_state_dict(saved)
    assert optimizer.param_groups[0]["decoupled_weight_decay"] is True


def test_betas_may_be_tensors():
    with pytest.raises(ValueError, match=r"betas\[0\] as a Tensor is not supported"):
        torch.optim.Adam([torch.ones(1, requires_grad=True)], foreach=True,
                         betas=(torch.tensor(0.9), torch.tensor(0.99)))
    found = []
    for kind in (float, torch.tensor):
        p = torch.ones(2, requires_grad=True)
        optimizer = torch.optim.Adam([p], lr=0.1, betas=(kind(0.5), kind(0.75)))
        for _ in range(2):
            p.grad = p.detach() ** 2
            optimizer.step()
        found.append(p.detach())
    torch.testing.assert_close(*found)
