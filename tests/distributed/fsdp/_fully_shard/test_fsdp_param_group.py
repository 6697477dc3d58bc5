"""The parameters of one `fully_shard`, which are gathered and reduced together."""
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.distributed.fsdp import fully_shard
from flambeau.distributed.fsdp._fully_shard._fsdp_common import TrainingState
from flambeau.distributed.fsdp._fully_shard._fsdp_param import ShardedState
from flambeau.distributed.fsdp._fully_shard._fsdp_param_group import _get_param_module_infos
from flambeau.distributed.tensor import DTensor


def group_of(model):
    return model._get_fsdp_state()._fsdp_param_group


def test_whose_parameters_they_are():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2, bias=False))
    model[1].weight = model[0].weight
    infos = _get_param_module_infos(list(model.parameters()), (model,))
    assert infos[0].places() == [(model[0], "weight"), (model[1], "weight")]
    assert infos[1].places() == [(model[0], "bias")]


def test_states(alone):
    model = fully_shard(nn.Linear(2, 2))
    group = group_of(model)
    assert group._sharded_state is ShardedState.SHARDED and isinstance(model.weight, DTensor)
    group.unshard()
    group.wait_for_unshard()
    group.use_parameters()
    assert group._sharded_state is ShardedState.UNSHARDED
    assert not isinstance(model.weight, DTensor) and model.weight.is_leaf
    group.reshard()
    assert group._sharded_state is ShardedState.SHARDED and isinstance(model.weight, DTensor)
    with group.use_training_state(TrainingState.PRE_BACKWARD):
        assert group._training_state is TrainingState.PRE_BACKWARD
    assert group._training_state is TrainingState.IDLE


def test_gradients_wait_until_they_are_wanted(alone):
    model = fully_shard(nn.Linear(2, 1, bias=False))
    group, x = group_of(model), torch.tensor([[1.0, 2.0]])
    model.set_requires_gradient_sync(False)
    model(x).sum().backward()
    assert model.weight.grad is None
    assert group.fsdp_params[0].unsharded_accumulated_grad.tolist() == [[1, 2]]
    model.set_requires_gradient_sync(True)
    model(x).sum().backward()
    assert model.weight.grad.full_tensor().tolist() == [[2, 4]]
    assert group.fsdp_params[0].unsharded_accumulated_grad is None


def test_what_users_set(alone):
    model = fully_shard(nn.Linear(2, 1, bias=False))
    group, seen = group_of(model), []
    model.set_gradient_divide_factor(4.0)
    model.set_reshard_after_backward(False)
    model(torch.ones(1, 2)).sum().backward()
    assert model._parameters["weight"] is not group.fsdp_params[0].sharded_param
    model.reshard()
    assert model.weight.grad.full_tensor().tolist() == [[0.25, 0.25]]
    group._all_reduce_hook = lambda flat: seen.append(flat.clone())
    model(torch.ones(1, 2)).sum().backward()
    assert seen[0].tolist() == [0.25, 0.25]


def test_states_are_those_of_pieces(alone):
    model = fully_shard(nn.Linear(2, 2))
    model.unshard()
    assert all(isinstance(v, DTensor) for v in model.state_dict().values())
    assert isinstance(model.weight, DTensor)


def test_types_have_to_agree(alone):
    model = nn.Linear(2, 2)
    model.bias = nn.Parameter(torch.ones(2, dtype=torch.float64))
    with pytest.raises(AssertionError, match="FSDP expects uniform original parameter dtype"):
        fully_shard(model)(torch.ones(1, 2))
