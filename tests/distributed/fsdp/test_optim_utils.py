"""States of optimizers of wrapped modules: whole, or of this process's parts."""
import pytest
from fsdp_cases import BY_LAYER, network, wrapped

import flambeau as torch
from flambeau.distributed.fsdp import FullyShardedDataParallel as FSDP

NAMES = ["0.weight", "0.bias", "1.0.weight", "1.0.bias", "1.1.weight", "1.1.bias"]
WAYS = [{}, {"auto_wrap_policy": BY_LAYER}, {"use_orig_params": True}]


def trained(model):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    model(torch.arange(4.0).view(1, 4)).pow(2).sum().backward()
    optimizer.step()
    return optimizer


@pytest.mark.parametrize("options", WAYS)
def test_states_are_those_of_the_module(alone, options):
    plain = network()
    model = wrapped(network(), **options)
    model.load_state_dict(plain.state_dict())
    expected = trained(plain).state_dict()["state"]
    found = FSDP.optim_state_dict(model, trained(model))
    assert list(found["state"]) == NAMES == found["param_groups"][0]["params"]
    assert found["param_groups"][0]["lr"] == 0.1
    for i, name in enumerate(NAMES):
        for key, value in expected[i].items():
            torch.testing.assert_close(found["state"][name][key], value)


@pytest.mark.parametrize("options", WAYS)
def test_round_trips_into_other_wrappings(alone, options):
    first = wrapped(network())
    whole = FSDP.optim_state_dict(first, trained(first))
    second = wrapped(network(), **options)
    optimizer = torch.optim.Adam(second.parameters(), lr=0.7)
    optimizer.load_state_dict(FSDP.optim_state_dict_to_load(second, optimizer, whole))
    assert optimizer.param_groups[0]["lr"] == 0.1
    again = FSDP.optim_state_dict(second, optimizer)
    for name, values in whole["state"].items():
        for key, value in values.items():
            torch.testing.assert_close(again["state"][name][key], value)


def test_before_the_first_step(alone):
    model = wrapped(network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    found = FSDP.optim_state_dict(model, optimizer)
    assert found["state"] == {} and found["param_groups"][0]["params"] == NAMES
