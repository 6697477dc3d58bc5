"""What calls about states are asked for."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.distributed.checkpoint.state_dict import (
    StateDictOptions,
    _get_fqns,
    get_model_state_dict,
    get_optimizer_state_dict,
    get_state_dict,
    set_model_state_dict,
)


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Sequential(nn.Linear(3, 1)))


@pytest.mark.parametrize("name", ["0.weight", "2.0.bias", "weight", "1.running_mean"])
def test_names(name):
    assert _get_fqns(network(), name) == {name}


def test_names_through_wrappers():
    from flambeau.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
    model = network()
    model[2] = checkpoint_wrapper(model[2])
    names = [name for name, _ in model.named_parameters()]
    assert set().union(*(_get_fqns(model, name) for name in names)) == {
        name for name, _ in network().named_parameters()}


def test_a_part_is_taken():
    model, other = network(), network()
    with torch.no_grad():
        other[0].weight.zero_()
    state = {"0.weight": model[0].weight.detach()}
    with pytest.raises(RuntimeError, match="Missing key"):
        set_model_state_dict(other, state)
    found = set_model_state_dict(other, state, options=StateDictOptions(strict=False))
    assert torch.equal(other[0].weight, model[0].weight) and "0.bias" in found.missing_keys


def test_frozen_parameters():
    model = network()
    model[0].weight.requires_grad_(False)
    found = get_model_state_dict(model, options=StateDictOptions(ignore_frozen_params=True))
    assert "0.weight" not in found and "0.bias" in found


def test_what_is_refused():
    model = network()
    with pytest.raises(ValueError, match="full_state_dict must be True"):
        get_model_state_dict(model, options=StateDictOptions(broadcast_from_rank0=True))
    with pytest.raises(RuntimeError, match="Optimizers are not passed in but optim_only is set"):
        get_optimizer_state_dict(model, ())


def test_extra_states():
    class Own(nn.Module):
        def get_extra_state(self):
            return 7

        def set_extra_state(self, state):
            self.extra = state
    model = nn.Sequential(Own())
    state, optim = get_state_dict(model, ())
    assert state == {"0._extra_state": 7} and optim == {}
    set_model_state_dict(model, {"0._extra_state": 9})
    assert model[0].extra == 9
