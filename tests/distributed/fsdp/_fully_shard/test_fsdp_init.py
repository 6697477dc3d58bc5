"""Meshes by the names of their dimensions."""
from __future__ import annotations

import pytest

from flambeau import nn
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
