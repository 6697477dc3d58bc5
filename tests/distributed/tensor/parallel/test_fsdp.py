"""Pieces of distributed tensors' local tensors, with four processes in a mesh of two by two."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau import nn
from flambeau.distributed.fsdp import FullyShardedDataParallel
from flambeau.distributed.tensor import Replicate, Shard, distribute_tensor
from flambeau.distributed.tensor.parallel import ColwiseParallel, fsdp, parallelize_module

WHOLE = torch.arange(24.0).view(6, 4)


def check_pieces(rank):
    mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "model"))
    data, model = mesh["data"], mesh["model"]
    row, column = divmod(rank, 2)
    extensions = fsdp.DTensorExtensions(None)
    for placement in (Shard(0), Shard(1), Replicate()):
        tensor = distribute_tensor(WHOLE.clone(), model, [placement])
        local = tensor.to_local().clone()
        flat, spec = extensions.pre_flatten_transform(tensor)
        again = extensions.post_unflatten_transform(flat, spec)
        assert again.placements == (placement,) and again._fsdp_flattened
        assert torch.equal(again.full_tensor(), WHOLE)

        piece = extensions.chunk_dtensor(tensor, row, data)
        assert piece.device_mesh == mesh and piece.placements == (Shard(0), placement)
        assert torch.equal(piece.full_tensor(), WHOLE)
        assert torch.equal(extensions.all_gather_dtensor(piece, mesh), local)

        nested = extensions.chunk_tensor(tensor, row, 2, 2, data.get_group())
        inner, shards = extensions.pre_load_state_dict_transform(nested)
        assert inner is nested.local_shards()[0].tensor
        assert torch.equal(shards[0].tensor, local.chunk(2)[row])
        offsets = [0, 0]
        if placement.is_shard():
            offsets[placement.dim] = column * local.size(placement.dim)
        assert nested.local_shards()[0].metadata.shard_offsets == offsets
        assert fsdp._get_local_box(tensor) == (torch.Size(offsets), local.shape)
    plain = extensions.chunk_dtensor(WHOLE, row, data)
    assert plain.placements == (Shard(0), Replicate())
    assert torch.equal(plain.to_local(), WHOLE.chunk(2)[row])


def test_pieces(processes):
    processes(check_pieces, size=4)


def test_what_is_refused(alone):
    mesh = dist.init_device_mesh("cpu", (1,))
    with pytest.raises(RuntimeError, match="meshes must be at least 2D"):
        fsdp._chunk_dtensor(WHOLE, 0, mesh)
    model = parallelize_module(nn.Sequential(nn.Linear(2, 2)), mesh, {"0": ColwiseParallel()})
    with pytest.raises(NotImplementedError, match="whose parameters are DTensors: fully_shard"):
        FullyShardedDataParallel(model)


def test_names_of_the_package():
    assert dist.RankType == int | torch.SymInt and dist.log.name.endswith(".distributed")
