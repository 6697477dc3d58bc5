"""The form that compile gives to a module."""
import copy

import pytest

import flambeau as torch
from flambeau import nn


def test_modules():
    model = nn.Sequential(nn.Linear(2, 3), nn.Dropout())
    compiled = torch.compile(model)
    assert repr(compiled).startswith("OptimizedModule(\n  (_orig_mod): Sequential(")
    assert list(compiled.state_dict()) == ["_orig_mod.0.weight", "_orig_mod.0.bias"]
    compiled.eval()
    assert not model.training and not model[1].training
    x = torch.ones(1, 2)
    assert torch.equal(compiled(x), model(x))
    compiled.note = 5
    assert model.note == 5 and compiled.note == 5
    model.hook_seen = []
    model.register_forward_hook(lambda *_: model.hook_seen.append(1))
    compiled(x)
    assert model.hook_seen == [1] and torch.compile(compiled) is compiled
    again = copy.deepcopy(compiled)
    assert torch.equal(again(x), compiled(x)) and again._orig_mod is not model
    with pytest.raises(AttributeError):
        _ = compiled.nothing
