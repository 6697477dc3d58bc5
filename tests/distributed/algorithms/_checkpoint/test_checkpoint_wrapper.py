"""Wrapped modules: names of parameters, activations that are computed again."""
from __future__ import annotations

import copy

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    ActivationWrapper,
    CheckpointImpl,
    CheckpointWrapper,
    apply_activation_checkpointing,
    checkpoint_wrapper,
    offload_wrapper,
)
from flambeau.distributed.fsdp.wrap import ModuleWrapPolicy


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.calls = nn.Linear(2, 2), 0

    def forward(self, x, *, scale=1.0):
        self.calls += 1
        return self.linear(x).tanh() * scale


@pytest.mark.parametrize("impl", list(CheckpointImpl))
def test_activations_are_computed_again(impl):
    layer = Layer()
    plain, wrapped = copy.deepcopy(layer), checkpoint_wrapper(layer, checkpoint_impl=impl)
    x = torch.ones(1, 2, requires_grad=True)
    wrapped(x, scale=2.0).sum().backward()
    plain(x, scale=2.0).sum().backward()
    assert layer.calls == 2
    assert torch.equal(layer.linear.weight.grad, plain.linear.weight.grad)


def test_names_are_those_of_the_module():
    model = nn.Sequential(checkpoint_wrapper(Layer()), offload_wrapper(nn.Linear(2, 1)))
    names = ["0.linear.weight", "0.linear.bias", "1.weight", "1.bias"]
    assert list(model.state_dict()) == names
    model.load_state_dict({name: torch.zeros_like(p) for name, p in model.state_dict().items()})
    assert not model[1].weight.any()
    assert list(dict(model[0].named_parameters())) == ["linear.weight", "linear.bias"]
    inner = "0._checkpoint_wrapped_module.linear.weight"
    assert inner in dict(model.named_parameters())
    assert model[0].calls == 0                  # attributes are those of the module
    with pytest.raises(AttributeError, match="'Layer' object has no attribute 'nothing'"):
        model[0].nothing
    with pytest.raises(TypeError, match="abstract"):
        ActivationWrapper(Layer())


def test_offloaded_activations():
    layer = nn.Linear(2, 1)
    offload_wrapper(layer)(torch.ones(1, 2)).sum().backward()
    assert layer.weight.grad.tolist() == [[1.0, 1.0]]


def test_functions_of_ones_own():
    def twice(function, x, *, factor):
        return factor * function(x)
    wrapped = checkpoint_wrapper(nn.Identity(), checkpoint_fn=twice, factor=3)
    assert wrapped(torch.ones(1)).item() == 3.0


def test_modules_are_chosen():
    def model():
        return nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Tanh(), nn.Linear(2, 1)))
    first = model()
    apply_activation_checkpointing(first, check_fn=lambda m: isinstance(m, nn.Linear))
    assert isinstance(first[0], CheckpointWrapper) and isinstance(first[1][1], CheckpointWrapper)
    assert not isinstance(first[1], CheckpointWrapper)
    second = model()
    apply_activation_checkpointing(second, auto_wrap_policy=ModuleWrapPolicy({nn.Sequential}))
    assert [type(m).__name__ for m in second] == ["Linear", "CheckpointWrapper"]
    third = model()
    apply_activation_checkpointing(third, checkpoint_wrapper_fn=offload_wrapper)
    assert [type(m).__name__ for m in third] == ["OffloadWrapper", "OffloadWrapper"]
