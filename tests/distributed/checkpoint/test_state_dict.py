"""States of models and optimizers by names, whatever wraps the model."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from flambeau.distributed.checkpoint.state_dict import (
    StateDictOptions,
    _init_optim_state,
    get_model_state_dict,
    get_optimizer_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
    set_state_dict,
)
from flambeau.distributed.fsdp import FullyShardedDataParallel as FSDP
from flambeau.nn.parallel import DistributedDataParallel as DDP


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Sequential(nn.Linear(3, 1)))


def groups(model, rate):
    first = list(model[0].parameters())
    rest = [p for n, p in model.named_parameters() if not n.startswith("0.")]
    return torch.optim.Adam([{"params": first, "lr": rate}, {"params": rest}], lr=0.01)


NAMES = ["0.weight", "0.bias", "1.weight", "1.bias", "2.0.weight", "2.0.bias"]


def test_names_and_options():
    model = network()
    optimizer = groups(model, 0.1)
    state, optim = get_state_dict(model, optimizer)
    assert list(state) == list(model.state_dict()) and list(optim["state"]) == NAMES
    assert optim["param_groups"][0]["params"] == ["0.weight", "0.bias"]
    flat = get_optimizer_state_dict(
        model, optimizer, options=StateDictOptions(flatten_optimizer_state_dict=True))
    assert flat["param_groups.0.weight.lr"] == 0.1 and "state.2.0.bias.exp_avg" in flat
    model[0].weight.requires_grad_(False)
    trained = get_model_state_dict(model, options=StateDictOptions(ignore_frozen_params=True))
    assert "0.weight" not in trained and "0.bias" in trained
    with pytest.warns(FutureWarning, match="submodules"):
        inner = get_model_state_dict(model, submodules={model[2]}, options=StateDictOptions(
            keep_submodule_prefixes=False))
    assert list(inner) == ["0.weight", "0.bias"]
    with pytest.raises(ValueError, match="full_state_dict must be True"):
        get_model_state_dict(model, options=StateDictOptions(broadcast_from_rank0=True))


@pytest.mark.parametrize("flat", [False, True])
def test_states_move(flat):
    options = StateDictOptions(flatten_optimizer_state_dict=flat)
    model, other = network(), network()
    optimizer, other_optimizer = groups(model, 0.1), groups(other, 0.5)
    model(torch.ones(4, 2)).sum().backward()
    optimizer.step()
    state, optim = get_state_dict(model, optimizer, options=options)
    set_state_dict(other, other_optimizer, model_state_dict=state, optim_state_dict=optim,
                   options=options)
    assert torch.equal(other[0].weight, model[0].weight)
    assert [group["lr"] for group in other_optimizer.param_groups] == [0.1, 0.01]
    torch.testing.assert_close(other_optimizer.state[other[0].bias]["exp_avg"],
                               optimizer.state[model[0].bias]["exp_avg"])
    with pytest.raises(RuntimeError, match="Unexpected key"):
        set_model_state_dict(other, {"x": torch.ones(1)})


def test_first_states():
    model = network()
    before = model[0].weight.detach().clone()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.3)
    _init_optim_state(optimizer)
    assert len(optimizer.state) == 6 and optimizer.param_groups[0]["lr"] == 0.3
    assert torch.equal(model[0].weight, before) and model[0].weight.grad is None
    tied = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
    tied[1].weight = tied[0].weight
    optimizer = torch.optim.Adam(tied.parameters())
    state = get_optimizer_state_dict(tied, optimizer)
    assert list(state["state"]) == ["0.weight"]
    set_optimizer_state_dict(tied, optimizer, state)


def wrapped(rank):
    torch.manual_seed(rank)
    plain, made = network(), network()
    made[2] = checkpoint_wrapper(made[2])
    ddp = DDP(made)
    assert list(get_model_state_dict(ddp)) == list(plain.state_dict())
    fsdp = FSDP(network(), use_orig_params=True)
    for model in (ddp, fsdp):
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        model(torch.ones(4, 2) + rank).sum().backward()
        optimizer.step()
        full = StateDictOptions(full_state_dict=True)
        state, optim = get_state_dict(model, optimizer, options=full)
        assert list(state) == list(plain.state_dict()) and set(optim["state"]) == set(NAMES)
        assert optim["state"]["0.weight"]["exp_avg"].shape == (3, 2)
        other = torch.optim.Adam(model.parameters(), lr=0.5)
        set_state_dict(model, other, model_state_dict=state, optim_state_dict=optim, options=full)
        again = get_optimizer_state_dict(model, other, options=full)
        torch.testing.assert_close(again["state"]["2.0.weight"]["exp_avg"],
                                   optim["state"]["2.0.weight"]["exp_avg"])
        assert other.param_groups[0]["lr"] == 0.1
        pieces = get_model_state_dict(model)
        set_model_state_dict(model, pieces)
        torch.testing.assert_close(get_model_state_dict(model, options=full), state)
    sent = {name: value + 1 for name, value in get_model_state_dict(ddp).items()} \
        if rank == 0 else {}
    before = ddp.module[0].weight.detach().clone()
    set_model_state_dict(ddp, sent, options=StateDictOptions(full_state_dict=True,
                                                             broadcast_from_rank0=True))
    torch.testing.assert_close(ddp.module[0].weight.data, before + 1)


def test_two_processes(processes):
    processes(wrapped)
