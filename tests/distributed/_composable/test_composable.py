"""Functions that change modules in place."""
from __future__ import annotations

import copy

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.distributed import config
from flambeau.distributed._composable import checkpoint, contract, replicate
from flambeau.distributed._composable.contract import _get_registry
from flambeau.distributed.device_mesh import init_device_mesh
from flambeau.distributed.fsdp import DataParallelMeshDims, FSDPModule, fully_shard
from flambeau.distributed.fsdp._fully_shard._fsdp_common import (
    DDPMeshInfo,
    FSDPMeshInfo,
    HSDPMeshInfo,
    ShardPlacementResult,
    resolve_shard_placement,
)
from flambeau.distributed.fsdp._fully_shard._fsdp_init import _get_mesh_info


@contract()
def mark(module, value=1):
    mark.state(module).value = value
    return module


@contract()
def rename(module):
    module.extra = nn.Parameter(torch.ones(1))
    return module


def test_contracts():
    layer = nn.Linear(1, 1)
    assert mark(layer, value=3) is layer and mark.state(layer).value == 3
    assert list(_get_registry(layer)) == ["mark"] and _get_registry(nn.ReLU()) is None
    with pytest.raises(AssertionError, match="mark has already been applied"):
        mark(layer)
    with pytest.raises(RuntimeError, match=r"Checking parameters: .*cannot modify FQNs"):
        rename(nn.Linear(1, 1))


def test_activations_are_computed_again():
    class Counted(nn.Linear):
        calls = 0

        def forward(self, x):
            self.calls += 1
            return super().forward(x).tanh()
    layer = checkpoint(Counted(2, 1))
    layer(torch.ones(1, 2)).sum().backward()
    assert layer.calls == 2 and layer.weight.grad is not None
    with pytest.raises(NotImplementedError, match="use_reentrant=True"):
        checkpoint(nn.Linear(1, 1), use_reentrant=True)


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


def test_meshes(alone):
    line = init_device_mesh("cpu", (1,))
    grid = init_device_mesh("cpu", (1, 1), mesh_dim_names=("r", "s"))
    info = _get_mesh_info(line)
    assert type(info) is FSDPMeshInfo and info.shard_mesh_size == 1 and not info.is_spmd_mesh
    assert type(_get_mesh_info(grid)) is HSDPMeshInfo
    for dims, kind in ((DataParallelMeshDims(shard="s"), FSDPMeshInfo),
                       (DataParallelMeshDims(replicate="r"), DDPMeshInfo),
                       (DataParallelMeshDims("s", "r"), HSDPMeshInfo)):
        found = _get_mesh_info(grid, dims)
        assert type(found) is kind and found.is_spmd_mesh
    assert resolve_shard_placement(None, info) == ShardPlacementResult(None, info)
    with pytest.raises(ValueError, match="At least one of shard or replicate"):
        DataParallelMeshDims()
    with pytest.raises(ValueError, match="expects a 1D or 2D DeviceMesh"):
        _get_mesh_info(init_device_mesh("cpu", (1, 1, 1)))
    module = fully_shard(nn.Linear(1, 1))
    assert isinstance(module, FSDPModule) and module.unshard() is None
    module.unshard(async_op=True).wait()


def test_switches():
    with config.patch(compile_on_one_rank=True):
        assert config.compile_on_one_rank
    assert not config.compile_on_one_rank
    with pytest.raises(AttributeError, match="nope does not exist"), config.patch(nope=1):
        pass
