"""Of what is kept for backward, each process keeps a piece."""
from __future__ import annotations

import copy

import pytest
from tensor_cases import imagined

import flambeau as torch
from flambeau import nn
from flambeau.distributed.device_mesh import init_device_mesh
from flambeau.distributed.tensor import DTensor, Replicate
from flambeau.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from flambeau.distributed.tensor.parallel.input_reshard import input_reshard

R = Replicate()


def whole(tensor):
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def pieces_of_what_is_saved(rank):
    mesh = init_device_mesh("cpu", (2,))
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2))
    single = copy.deepcopy(model)
    parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    input_reshard(model, mesh, 0)
    x = torch.randn(5, 4)
    model(x).sum().backward()
    single(x).sum().backward()
    for p, q in zip(model.parameters(), single.parameters()):
        torch.testing.assert_close(whole(p.grad), q.grad)


def test_two_processes(processes):
    processes(pieces_of_what_is_saved)


@pytest.fixture
def mesh():
    """Process 1 of 2, the other imagined."""
    with imagined(2) as found:
        yield found
