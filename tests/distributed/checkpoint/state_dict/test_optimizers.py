"""States of optimizers by names."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.distributed.checkpoint.state_dict import (
    StateDictOptions,
    _init_optim_state,
    get_optimizer_state_dict,
    set_optimizer_state_dict,
)


def trained(cls=torch.optim.Adam, **options):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    optimizer = cls(model.parameters(), **options)
    model(torch.ones(4, 2)).sum().backward()
    optimizer.step()
    return model, optimizer


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize(("cls", "options"), [
    (torch.optim.Adam, {"lr": 0.1}), (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}),
    (torch.optim.AdamW, {"lr": 0.1, "amsgrad": True})])
def test_there_and_back(cls, options, flat):
    how = StateDictOptions(flatten_optimizer_state_dict=flat)
    model, optimizer = trained(cls, **options)
    state = get_optimizer_state_dict(model, optimizer, options=how)
    other, other_optimizer = trained(cls, **{**options, "lr": 0.7})
    set_optimizer_state_dict(other, other_optimizer, state, options=how)
    assert other_optimizer.param_groups[0]["lr"] == 0.1
    torch.testing.assert_close(other_optimizer.state_dict()["state"],
                               optimizer.state_dict()["state"])


def test_flat_names():
    model, optimizer = trained(torch.optim.SGD, lr=0.1, momentum=0.9)
    found = get_optimizer_state_dict(model, optimizer, options=StateDictOptions(
        flatten_optimizer_state_dict=True))
    assert {name for name in found if name.startswith("state.")} == {
        f"state.{i}.{name}.momentum_buffer" for i in (0, 1) for name in ("weight", "bias")}
    assert found["param_groups.1.bias.lr"] == 0.1


def test_first_states():
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.3)
    before = model[0].weight.detach().clone()
    _init_optim_state(optimizer)
    assert len(optimizer.state) == 4 and optimizer.param_groups[0]["lr"] == 0.3
    assert torch.equal(model[0].weight, before) and model[0].weight.grad is None
    kept = dict(optimizer.state[model[0].weight])
    _init_optim_state(optimizer)                        # there is one already
    assert optimizer.state[model[0].weight]["exp_avg"] is kept["exp_avg"]
