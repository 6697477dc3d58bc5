"""Tensor parallelism under `DistributedDataParallel`."""
from __future__ import annotations

import copy

import pytest
from tensor_cases import imagined

import flambeau as torch
from flambeau import nn
from flambeau.distributed.device_mesh import init_device_mesh
from flambeau.distributed.tensor import Replicate
from flambeau.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from flambeau.distributed.tensor.parallel.ddp import _pre_dp_module_transform

R = Replicate()


def under_data_parallelism(rank):
    """Two copies, each of them cut in two."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("copies", "parts"))
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2))
    single = copy.deepcopy(model)
    parallelize_module(model, mesh["parts"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
    _pre_dp_module_transform(model)
    assert model[0].weight.shape == (3, 4) and type(model[0].weight) is nn.Parameter
    wrapped = nn.parallel.DistributedDataParallel(model,
                                                  process_group=mesh.get_group("copies"))
    optimizers = [torch.optim.SGD(m.parameters(), 0.1) for m in (wrapped, single)]
    for step in range(2):
        x = torch.arange(16.0).view(4, 4) / (8 + step)
        wrapped(x.chunk(2)[mesh.get_local_rank("copies")]).pow(2).mean().backward()
        single(x).pow(2).mean().backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    part = mesh.get_local_rank("parts")
    torch.testing.assert_close(model[0].weight, single[0].weight.chunk(2)[part])
    torch.testing.assert_close(model[2].weight, single[2].weight.chunk(2, 1)[part])


def test_four_processes(processes):
    processes(under_data_parallelism, size=4)


@pytest.fixture
def mesh():
    """Process 1 of 2, the other imagined."""
    with imagined(2) as found:
        yield found
