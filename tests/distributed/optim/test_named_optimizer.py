"""Optimizers that know names."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.distributed.optim import _NamedOptimizer


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


def test_what_is_refused():
    model, other = nn.Linear(2, 1), nn.Linear(1, 1)
    with pytest.raises(ValueError, match="found in param group but is missing"):
        _NamedOptimizer(model.named_parameters(), torch.optim.SGD,
                        [{"params": [other.weight]}], lr=0.1)
    with pytest.raises(AssertionError, match="param group must be a dict"):
        _NamedOptimizer(model.named_parameters(), torch.optim.SGD, [3], lr=0.1)
    with pytest.raises(AssertionError, match="param group must contain key params"):
        _NamedOptimizer(model.named_parameters(), torch.optim.SGD, [{"lr": 1}], lr=0.1)
    with pytest.raises(TypeError, match="optimizer can only optimize Tensors, but one of the"):
        _NamedOptimizer(model.named_parameters(), torch.optim.SGD, [{"params": [3]}], lr=0.1)


def test_parameters_that_come_later():
    model = nn.Sequential(nn.Linear(2, 1), nn.Linear(1, 1))
    optimizer = _NamedOptimizer(model.named_parameters(), torch.optim.SGD,
                                [{"params": [model[0].weight]}], module=model, lr=0.1)
    optimizer.add_param_group({"params": model[1].weight, "lr": 0.2})
    assert optimizer.ordered_param_keys == ["0.weight", "1.weight"]
    assert [group["params"] for group in optimizer.state_dict()["param_groups"]] == [
        ["0.weight"], ["1.weight"]]
    with pytest.raises(ValueError, match="some parameters are not in the module"):
        optimizer.add_param_group({"params": nn.Linear(1, 1).weight})
