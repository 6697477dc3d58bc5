"""Parameters: those without values, on meta."""

import copy
import pickle

import pytest
from script_tests import ScriptTests

import flambeau as torch
from flambeau import nn


def test_a_parameter_on_meta_is_of_a_type_that_makes_parameters():
    weight = nn.Linear(2, 2, device="meta").weight
    assert type(weight).__name__ == "Parameter" and isinstance(weight, nn.Parameter)
    assert weight.__class__ is nn.Parameter
    assert repr(weight).startswith("Parameter containing:\ntensor(..., device='meta'")
    made = type(weight)(torch.ones(2), requires_grad=False)
    assert type(made) is nn.Parameter and not made.requires_grad
    for again in (copy.deepcopy(weight), pickle.loads(pickle.dumps(weight)),
                  nn.Parameter(weight), nn.Parameter(weight.data)):
        assert type(again) is type(weight) and again.is_meta and again.requires_grad
    for plain in (weight.data, weight * 2, torch.empty_like(weight)):
        assert not isinstance(plain, nn.Parameter)
    assert repr(type(weight * 2)) == "<class 'torch.Tensor'>"


@pytest.mark.parametrize("made", [nn.UninitializedParameter, nn.UninitializedBuffer])
def test_what_an_uninitialized_tensor_refuses(made):
    tensor = made(dtype=torch.float64)
    for name in ("detach", "requires_grad_", "clone", "numel", "t"):
        with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter in"):
            getattr(tensor, name)()
    assert tensor.is_floating_point() and not tensor.is_complex()
    of_halves = torch.Tensor if made is nn.UninitializedParameter else made
    assert type(tensor.half()) is of_halves
    tensor.materialize((2, 3))
    assert tensor.shape == (2, 3) and tensor.dtype == torch.float64


def test_lazy_layers_on_meta():
    waiting = nn.UninitializedParameter(device="meta")
    assert waiting.device.type == copy.deepcopy(waiting).device.type == "meta"
    layer = nn.LazyLinear(3, device="meta")
    norm = nn.LazyBatchNorm1d(device="meta")
    for member in (*layer.parameters(), norm.running_mean, norm.weight):
        assert member.device.type == "meta"
    norm(layer(torch.ones(2, 4, device="meta")))
    assert isinstance(layer.weight, nn.Parameter) and layer.weight.is_meta
    assert repr(layer.weight).startswith("Parameter containing:\ntensor(..., device='meta'")
    assert norm.running_mean.is_meta and norm.running_mean.shape == (3,)


class TestScripts(ScriptTests):
    topics = ("parameter",)
