"""Optimizers that are given gradients, that step in the backward pass, that know names."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.distributed.optim import (
    _apply_optimizer_in_backward,
    _FunctionalSGD,
    _get_in_backward_optimizers,
    _NamedOptimizer,
    as_functional_optim,
)
from flambeau.distributed.optim.utils import functional_optim_map


@pytest.mark.parametrize("cls", list(functional_optim_map), ids=lambda cls: cls.__name__)
def test_given_gradients(cls):
    plain, given = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(3))
    options = {"lr": 0.1} if cls.__name__ != "AdamW" else {"lr": 0.1, "weight_decay": 0.2}
    optimizer, functional = cls([plain], **options), functional_optim_map[cls]([given], **options)
    for step in range(3):
        plain.grad = torch.tensor([1.0, -2.0, 3.0]) * (step + 1)
        optimizer.step()
        functional.step([plain.grad])
    torch.testing.assert_close(plain, given)
    assert given.grad is None and set(functional.state[given]) == set(optimizer.state[plain])


def test_one_parameter_at_a_time():
    weight = nn.Parameter(torch.ones(2))
    functional = as_functional_optim(torch.optim.SGD, lr=0.1, momentum=0.9)
    for _ in range(2):
        functional.step_param(weight, torch.ones(2))
    torch.testing.assert_close(weight.data, torch.full((2,), 0.71))
    assert functional.defaults["momentum"] == 0.9 and not functional.nesterov
    with pytest.raises(ValueError, match="does not have a functional counterpart"):
        as_functional_optim(int)
    with pytest.raises(ValueError, match="empty parameter list"):
        _FunctionalSGD([])
    with pytest.raises(ValueError, match=r"Params length: 1. Gradients length: 2"):
        _FunctionalSGD([weight]).step([None, None])


def test_steps_in_backward():
    layer = nn.Linear(2, 1)
    for _ in range(2):
        _apply_optimizer_in_backward(torch.optim.SGD, layer.parameters(), {"lr": 0.1})
    before = layer.weight.detach().clone()
    layer(torch.ones(1, 2)).sum().backward()
    torch.testing.assert_close(layer.weight.data, before - 0.2)
    assert layer.weight.grad is None and len(_get_in_backward_optimizers(layer)) == 4


def test_names():
    model = nn.Sequential(nn.Linear(2, 1), nn.Linear(1, 1))

    def make():
        return _NamedOptimizer(model.named_parameters(), torch.optim.SGD,
                               [{"params": list(model[0].parameters()), "lr": 0.2}], lr=0.1,
                               momentum=0.9)
    optimizer = make()
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    state = optimizer.state_dict()
    assert set(state["state"]) == {"0.weight", "0.bias"}
    assert state["param_groups"][0]["params"] == ["0.bias", "0.weight"]
    other = make()
    with pytest.raises(ValueError, match="Expects the optim to be initialized before load"):
        other.load_state_dict(state)
    other.init_state()
    other.load_state_dict(state)
    torch.testing.assert_close(other.state_dict()["state"]["0.bias"]["momentum_buffer"],
                               state["state"]["0.bias"]["momentum_buffer"])
    with pytest.raises(ValueError, match=r"Expects equal length as 1 for parameter 0.weight"):
        other.load_state_dict({**state, "state": {"0.weight": {}}})
