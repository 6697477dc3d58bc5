"""Steps of optimizers that follow a hook."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.distributed.algorithms.ddp_comm_hooks import default_hooks
from flambeau.distributed.algorithms.ddp_comm_hooks import optimizer_overlap_hooks as hooks
from flambeau.distributed.optim import _apply_optimizer_in_backward
from flambeau.nn.parallel import DistributedDataParallel


class Steps:
    """Notes what it is to change."""

    def __init__(self):
        self.seen = []

    def step_param(self, parameter, gradient):
        self.seen.append((parameter, gradient.tolist()))


def test_the_optimizer_gets_what_the_hook_left(alone):
    layer, steps = nn.Linear(2, 1, bias=False), Steps()
    model = DistributedDataParallel(layer)
    half = default_hooks.bf16_compress_wrapper(default_hooks.allreduce_hook)
    state = hooks._OptimizerHookState(steps)
    model.register_comm_hook(None, hooks._hook_then_optimizer(half, state))
    model(torch.full((1, 2), 1 / 3)).sum().backward()
    (parameter, gradient), = steps.seen
    assert parameter is layer.weight
    assert gradient == [[torch.tensor(1 / 3).bfloat16().item()] * 2]


def test_parameters_that_are_left_out(alone):
    layer, steps = nn.Linear(2, 1), Steps()
    model = DistributedDataParallel(layer)
    state = hooks._OptimizerHookState(steps, [layer.bias])
    model.register_comm_hook(None, hooks._hook_then_optimizer(default_hooks.allreduce_hook, state))
    model(torch.ones(1, 2)).sum().backward()
    assert [parameter is layer.bias for parameter, _ in steps.seen] == [True]


def test_optimizers_for_one_parameter_are_needed():
    with pytest.raises(ValueError, match="must implement method step_param"):
        hooks._OptimizerHookState(torch.optim.SGD([torch.ones(1)], 0.1))


def test_optimizers_of_the_parameters(alone):
    layer = nn.Linear(2, 1, bias=False)
    before = layer.weight.detach().clone()
    _apply_optimizer_in_backward(torch.optim.SGD, layer.parameters(), {"lr": 0.5})
    model = DistributedDataParallel(layer)
    for _ in range(2):
        model(torch.ones(1, 2)).sum().backward()
    torch.testing.assert_close(layer.weight.detach(), before - 1.0)
