"""Weights as length and direction, by hooks."""
import copy

import pytest
from script_tests import ScriptTests

import flambeau as torch
from flambeau import nn


class TestScripts(ScriptTests):
    topics = ("utils/weight_norm",)


@pytest.mark.parametrize("dim, shape", [(0, (2, 1)), (1, (1, 3)), (None, ())])
def test_length_times_direction(dim, shape):
    layer = nn.utils.weight_norm(nn.Linear(3, 2), dim=dim)
    assert layer.weight_g.shape == shape and list(layer.state_dict()) == [
        "bias", "weight_g", "weight_v"]
    with torch.no_grad():
        layer.weight_g *= 3
    before = layer.weight.detach().clone()
    layer(torch.ones(1, 3))                             # the weight is made anew in each call
    torch.testing.assert_close(layer.weight.detach(), 3 * before)


def test_taken_away_again():
    layer = nn.utils.weight_norm(nn.Linear(3, 2))
    weight = layer.weight.detach().clone()
    assert nn.utils.remove_weight_norm(layer) is layer
    torch.testing.assert_close(layer.weight.detach(), weight)
    assert isinstance(layer.weight, nn.Parameter) and not layer._forward_pre_hooks
    with pytest.raises(ValueError, match="weight_norm of 'weight' not found in"):
        nn.utils.remove_weight_norm(layer)


def test_gradients_of_the_direction_are_orthogonal_to_it():
    layer = nn.utils.weight_norm(nn.Linear(3, 2))
    layer(torch.randn(4, 3)).square().sum().backward()
    along = (layer.weight_v.grad * layer.weight_v).sum(1)
    torch.testing.assert_close(along, torch.zeros(2), atol=1e-4, rtol=0)


@pytest.mark.parametrize("dim, name", [(0, "WeightNormInterface"), (2, "WeightNormInterface"),
                                       (1, "Mul"), (None, "Mul")])
def test_the_kernel_takes_the_first_dimension_or_the_last(dim, name):
    layer = nn.utils.parametrizations.weight_norm(nn.Conv1d(2, 3, 4), dim=dim)
    assert type(layer.weight.grad_fn).__name__ == f"{name}Backward0"


def test_copies_have_to_wait_until_it_is_taken_away():
    layer = nn.utils.weight_norm(nn.Linear(3, 2))
    with pytest.raises(RuntimeError, match="support the deepcopy protocol"):
        copy.deepcopy(layer)
    nn.utils.remove_weight_norm(layer)
    assert torch.equal(copy.deepcopy(layer).weight, layer.weight)
