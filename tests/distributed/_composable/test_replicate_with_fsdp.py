"""`replicate` by the means of `fully_shard`: gradients are averaged, names stay."""
from __future__ import annotations

import copy

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau import nn
from flambeau.distributed._composable.replicate_with_fsdp import ReplicateModule, replicate
from flambeau.distributed.device_mesh import init_device_mesh
from flambeau.distributed.fsdp import FSDPModule, fully_shard
from flambeau.distributed.tensor import Replicate


def training(rank):
    torch.manual_seed(0)
    single = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    model = copy.deepcopy(single)
    replicate(model[0])
    replicate(model)
    assert type(model).__name__ == "ReplicateSequential" and isinstance(model, FSDPModule)
    optimizers = [torch.optim.SGD(m.parameters(), 0.1) for m in (single, model)]
    for step in range(3):
        x = torch.arange(12.0).view(4, 3) / (5 + step)
        single(x).pow(2).mean().backward()
        model(x.chunk(2)[rank]).pow(2).mean().backward()
        for p, q in zip(model.parameters(), single.parameters()):
            assert p.placements == p.grad.placements == (Replicate(),)
            torch.testing.assert_close(p.grad.to_local(), q.grad)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    for p, q in zip(model.parameters(), single.parameters()):
        torch.testing.assert_close(p.to_local(), q)


def test_two_processes(processes):
    processes(training)


def test_refusals(alone):
    assert isinstance(replicate(nn.Linear(1, 1)), ReplicateModule)
    with pytest.raises(ValueError, match="do not implement forward"):
        replicate(nn.ModuleList())
    with pytest.raises(ValueError, match="expects a 1D DeviceMesh"):
        replicate(nn.Linear(1, 1), mesh=init_device_mesh("cpu", (1, 1)))
    with pytest.raises(RuntimeError, match="already managed by"):
        replicate(fully_shard(nn.Linear(1, 1)))
    assert dist.get_world_size() == 1
