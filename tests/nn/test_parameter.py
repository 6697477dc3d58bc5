"""Parameters: those without values, on meta."""

import copy
import pickle

from script_tests import ScriptTests

import flambeau as torch
from flambeau import nn


def test_a_parameter_on_meta_is_of_a_type_that_makes_parameters():
    weight = nn.Linear(2, 2, device="meta").weight
    assert type(weight).__name__ == "Parameter" and isinstance(weight, nn.Parameter)
    assert repr(weight).startswith("Parameter containing:\ntensor(..., device='meta'")
    made = type(weight)(torch.ones(2), requires_grad=False)
    assert type(made) is nn.Parameter and not made.requires_grad
    for again in (copy.deepcopy(weight), pickle.loads(pickle.dumps(weight)),
                  nn.Parameter(weight), nn.Parameter(weight.data)):
        assert type(again) is type(weight) and again.is_meta and again.requires_grad
    for plain in (weight.data, weight * 2, torch.empty_like(weight)):
        assert not isinstance(plain, nn.Parameter)
    assert repr(type(weight * 2)) == "<class 'torch.Tensor'>"


class TestScripts(ScriptTests):
    topics = ("parameter",)
