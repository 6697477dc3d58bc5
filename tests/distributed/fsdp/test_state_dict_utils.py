"""State dicts of wrapped modules: whole tensors, sharded ones, or the flat part."""
import pytest
from fsdp_cases import BY_LAYER, network, wrapped

import flambeau as torch
from flambeau import nn
from flambeau.distributed.fsdp import FullyShardedDataParallel as FSDP
from flambeau.distributed.fsdp import StateDictType

NAMES = ["0.weight", "0.bias", "1.0.weight", "1.0.bias", "1.1.weight", "1.1.bias"]


@pytest.mark.parametrize("options", [{}, {"auto_wrap_policy": BY_LAYER},
                                     {"use_orig_params": True}])
@pytest.mark.parametrize("kind", list(StateDictType))
def test_names_and_values_are_the_modules(alone, options, kind):
    plain = network()
    model = wrapped(network(), **options)
    with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT):
        model.load_state_dict(plain.state_dict())
    with FSDP.state_dict_type(model, kind):         # the same for all where nothing is cut
        state = model.state_dict()
    assert list(state) == NAMES
    for name, value in plain.state_dict().items():
        assert torch.equal(state[name], value)


def test_a_prefix(alone):
    model = nn.ModuleDict({"m": wrapped(network())})
    assert list(model.state_dict()) == ["m." + name for name in NAMES]
    assert list(model["m"].state_dict(prefix="x.")) == ["x." + name for name in NAMES]


def test_buffers_and_shared_parameters(alone):
    inner = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Linear(2, 2))
    inner[2].weight = inner[0].weight
    names = list(inner.state_dict())
    model = wrapped(inner)
    state = model.state_dict()
    assert sorted(state) == sorted(names) and state["1.num_batches_tracked"] == 0
    assert torch.equal(state["0.weight"], state["2.weight"])
    state = {name: torch.zeros_like(value) for name, value in state.items()}
    assert str(model.load_state_dict(state)) == "<All keys matched successfully>"
    assert not any(value.any() for value in model.state_dict().values())


def test_errors_of_loading(alone):
    model = wrapped(network())
    state = model.state_dict()
    del state["0.bias"]
    with pytest.raises(RuntimeError, match=r"Missing key\(s\) in state_dict: .*0.bias"):
        model.load_state_dict(state)
    assert model.training_state is FSDP.fsdp_modules(model)[0].training_state
