"""The processes among which parameters are cut, and copied; types and sizes of pieces."""
import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau import nn
from flambeau.distributed.device_mesh import init_device_mesh
from flambeau.distributed.fsdp._fully_shard import _fsdp_common as common
from flambeau.testing._internal.distributed.fake_pg import FakeStore


@pytest.fixture
def grid():
    """Process 4 of 6, in two copies of three pieces; the others imagined."""
    dist.init_process_group("fake", store=FakeStore(), rank=4, world_size=6)
    yield init_device_mesh("cpu", (2, 3), mesh_dim_names=("r", "s"))
    dist.destroy_process_group()


def test_places_in_a_mesh(grid):
    cut = common.FSDPMeshInfo(grid, shard_mesh_dim=1)
    assert (cut.shard_mesh_size, cut.shard_mesh_rank) == (3, 1)
    assert dist.get_process_group_ranks(cut.shard_process_group) == [3, 4, 5]
    copied = common.DDPMeshInfo(grid, replicate_mesh_dim=0)
    assert (copied.replicate_mesh_size, copied.replicate_mesh_rank) == (2, 1)
    both = common.HSDPMeshInfo(grid, shard_mesh_dim=1, replicate_mesh_dim=0)
    assert (both.shard_mesh_size, both.replicate_mesh_size) == (3, 2)
    assert not both.is_spmd_mesh


def test_dimensions_that_have_to_be_there(grid):
    for cls, options, message in (
            (common.DataParallelMeshInfo, {}, "At least one of shard_mesh_dim and "
                                              "replicate_mesh_dim must not be None"),
            (common.FSDPMeshInfo, {"replicate_mesh_dim": 0}, "Expects non-None shard_mesh_dim"),
            (common.DDPMeshInfo, {"shard_mesh_dim": 0}, "Expects non-None replicate_mesh_dim"),
            (common.HSDPMeshInfo, {"shard_mesh_dim": 0}, "Expects non-None replicate_mesh_dim")):
        with pytest.raises(AssertionError, match=message):
            cls(grid, **options)


@pytest.mark.parametrize(("shape", "factor", "padded"), [
    ((5, 2), 4, (8, 2)), ((8,), 4, (8,)), ((0, 3), 2, (0, 3)), ((1, 1, 7), 3, (3, 1, 7))])
def test_padded_sizes(shape, factor, padded):
    if shape[0]:
        assert common._get_dim0_padded_size(torch.Size(shape), factor) == torch.Size(padded)


@pytest.mark.parametrize(("size", "count", "sizes"), [
    (5, 2, [3, 2]), (5, 4, [2, 2, 1, 0]), (2, 4, [1, 1, 0, 0]), (6, 3, [2, 2, 2])])
def test_as_many_pieces_as_asked_for(size, count, sizes):
    for dim in (0, 1):
        x = torch.arange(size * size).view(size, size)
        found = common._chunk_with_empty(x, count, dim)
        assert [piece.shape[dim] for piece in found] == sizes
        assert torch.equal(torch.cat([p for p in found if p.numel()], dim), x)


def test_types():
    x = torch.ones(2)
    assert common._cast_fp_tensor(torch.float16, x).dtype is torch.float16
    whole = torch.arange(2)
    for same in (whole, 3, "a", None):
        assert common._cast_fp_tensor(torch.float16, same) is same
    assert common._to_dtype_if_needed(x, None) is common._to_dtype_if_needed(x, torch.float32) is x
    assert common._to_dtype_if_needed(x, torch.float64).dtype is torch.float64


def test_modules_that_may_be_cut():
    assert common._is_composable_with_fsdp(nn.Linear(1, 1))
