"""Names, states and searches that the parts of `FullyShardedDataParallel` share."""
import warnings

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from flambeau.distributed.fsdp import FullyShardedDataParallel as FSDP
from flambeau.distributed.fsdp import _common_utils as common


@pytest.mark.parametrize(("given", "clean"), [
    ("weight", "weight"), ("_fsdp_wrapped_module.weight", "weight"),
    ("0._fsdp_wrapped_module._checkpoint_wrapped_module.a", "0.a"), ("", ""),
    ("a._fsdp_wrapped_module.b._fsdp_wrapped_module.c", "a.b.c"),
    ("_fsdp_wrapped_module", "_fsdp_wrapped_module")])
def test_names_of_users(given, clean):
    assert common.clean_tensor_name(given) == clean


def test_flat_parameters_are_marked():
    x = torch.ones(1)
    assert not common._is_fsdp_flattened(x)
    common._set_fsdp_flattened(x)
    assert common._is_fsdp_flattened(x)


def shared():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model[1].weight = model[0].weight
    return model


def test_all_names_of_parameters():
    model = shared()
    assert [n for n, _ in common._named_parameters_with_duplicates(model)] == [
        "0.weight", "0.bias", "1.weight", "1.bias"]
    assert [n for n, _ in common._named_parameters_with_duplicates(
        model, recurse=False)] == []
    with pytest.raises(AssertionError, match="cannot be used with `remove_duplicate` argument"):
        common._named_parameters_with_duplicates(model, remove_duplicate=True)
    assert list(common._get_param_to_fqns(model).values()) == [["0.weight"], ["0.bias"], ["1.bias"]]
    assert common._get_param_to_fqns(model, dedup_shared_params=False)[model[0].weight] == [
        "0.weight", "1.weight"]
    model[0] = checkpoint_wrapper(model[0])
    assert list(common._get_param_to_fqns(model).values())[1] == ["0.bias"]


def test_a_walk_over_modules():
    model = nn.Sequential(nn.Sequential(nn.ReLU()), nn.Tanh())
    seen = []
    found = common._apply_to_modules(
        model, lambda module, prefix, level, out: out.append((type(module), prefix, level)),
        lambda out: len(out), None, seen)
    assert found == 4 == len(seen)
    assert seen[1:] == [(nn.Sequential, "0.", 1), (nn.ReLU, "0.0.", 2), (nn.Tanh, "1.", 1)]


def test_roots():
    model = nn.Sequential(nn.Sequential(nn.ReLU()), nn.Tanh())
    assert common._get_root_modules({model[0], model[0][0], model[1]}) == {model[0], model[1]}
    assert common._get_root_modules(set(model.modules())) == {model}
    assert common._get_root_modules(set()) == set()


def test_classes_that_stay_in_full_precision():
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.LayerNorm(2))
    found = common._override_module_mixed_precision(
        model, [nn.BatchNorm1d, nn.LayerNorm, nn.BatchNorm3d])
    assert found == {nn.BatchNorm1d, nn.LayerNorm}
    assert model[1]._wrap_overrides == {"mixed_precision": None}
    assert not hasattr(model[0], "_wrap_overrides")
    # It computes with 32 bits, what comes in with 16 leaves with 16.
    assert model[2](torch.ones(3, 2, dtype=torch.float16)).dtype is torch.float16


def test_states(alone):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = FSDP(nn.Linear(2, 2), device_id=None)
    assert common._get_module_fsdp_state(model) is model
    assert common._get_module_fsdp_state(model.module) is None
    assert common._has_fsdp_params(model, model) and not common._is_composable(model)
    common._assert_in_training_states(model, [common.TrainingState.IDLE])
    with pytest.raises(ValueError, match=r"expected to be in states .*SUMMON_FULL_PARAMS.* but "
                                         r"current state is TrainingState.IDLE"):
        common._assert_in_training_states(model, [common.TrainingState.SUMMON_FULL_PARAMS])
