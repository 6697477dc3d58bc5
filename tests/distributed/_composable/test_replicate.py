"""Copies of a module on all ranks."""
from __future__ import annotations

import copy

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.distributed._composable import replicate
from flambeau.distributed.fsdp import fully_shard


def shared(rank):
    torch.manual_seed(0)
    model = replicate(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1)))
    assert list(model.state_dict()) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    model(torch.ones(1, 2) * (rank + 1)).sum().backward()
    torch.testing.assert_close(model[0].weight.grad[:, 0], 1.5 * model[1].weight[0].detach())
    model.set_requires_gradient_sync(False)
    model.zero_grad()
    model(torch.ones(1, 2) * (rank + 1)).sum().backward()
    torch.testing.assert_close(model[0].weight.grad[:, 0],
                               (rank + 1) * model[1].weight[0].detach())
    with pytest.raises(AssertionError, match="does not support deepcopy"):
        copy.deepcopy(model)
    assert fully_shard(nn.Linear(2, 1)).weight.to_local().shape == (1 - rank, 2)


def test_two_processes(processes):
    processes(shared)
