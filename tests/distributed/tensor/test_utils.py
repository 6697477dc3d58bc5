"""What rules of others use: sizes of pieces, dimensions, placements. Values are PyTorch's."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau.distributed import tensor as distributed_tensor
from flambeau.distributed.device_mesh import init_device_mesh
from flambeau.distributed.tensor import Partial, Replicate, Shard, _collective_utils, _utils
from flambeau.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from flambeau.distributed.tensor._ops import utils
from flambeau.testing._internal.distributed.fake_pg import FakeStore

R = Replicate()


@pytest.fixture
def mesh():
    """Process 1 of 4, the others imagined."""
    dist.init_process_group("fake", store=FakeStore(), rank=1, world_size=4)
    yield init_device_mesh("cpu", (4,))
    dist.destroy_process_group()


def spec(mesh, *placements):
    return DTensorSpec(mesh, placements, TensorMeta(torch.Size((8, 6)), (6, 1), torch.float32))


def test_pieces(mesh):
    x = torch.empty(8, 6)
    both = init_device_mesh("cpu", (2, 2))
    assert _utils.compute_local_stride((1, 8), (4, 3)) == (1, 4)
    assert _utils.compute_local_tensor_info(x, mesh, [Shard(0)]) == ([2, 6], [6, 1])
    assert _utils.compute_local_tensor_info(x.t(), both, [Shard(0), Shard(1)]) == ([3, 4], [1, 3])
    with pytest.raises(AssertionError, match="Sharding dim 2 greater than tensor ndim 2"):
        _utils.compute_local_tensor_info(x, mesh, [Shard(2)])
    add = torch.ops.aten.add.Tensor
    d = distributed_tensor.distribute_tensor(x, mesh)
    assert _utils.try_find_mesh_from_args(add, [1, [d]]) is mesh
    with pytest.raises(ValueError, match="Cannot find device mesh from args for op"):
        _utils.try_find_mesh_from_args(add, [x])


def test_dimensions_and_placements(mesh):
    cut = spec(mesh, Shard(0))
    assert utils.is_tensor_dim_sharded(cut, 0) and not utils.is_tensor_dim_sharded(cut, 1)
    assert utils.is_tensor_shardable((8, 6), cut) and not utils.is_tensor_shardable((2, 6), cut)
    assert not utils.is_tensor_evenly_shardable((7, 6), cut)
    assert utils.is_tensor_evenly_shardable_on_dim((7, 6), cut, 1)
    assert not utils.is_tensor_partial(cut) and utils.is_tensor_partial(spec(mesh, Partial()))
    assert utils.infer_broadcast_dims_map((4, 3, 2), (3, 1)) == [-1, 0, -1]
    after = utils.map_placements_after_broadcast
    assert after((Shard(0), R), (4, 3, 2), [-1, 0, -1]) == (R, R)
    assert after((Partial(), Shard(1)), (4, 3), [0, 1], True) == (R, Shard(1))
    assert utils.shift_shard_dims_after_insert((Shard(0), Shard(1), R), 1) == [
        Shard(0), Shard(2), R]
    assert utils.shift_shard_dims_after_remove((Shard(0), Shard(2), R), 1) == [
        Shard(0), Shard(1), R]
    assert utils.normalize_dims((-1, 0), 3) == (2, 0) and utils.normalize_dims(-1, 3) == (2,)
    assert utils.as_list((1, 2)) == [(1, 2)] and utils.prod([2, 3]) == 6
    assert distributed_tensor._DTensorSpec is DTensorSpec


def test_costs(mesh):
    cost = _collective_utils.one_step_redistribute_cost
    assert cost(spec(mesh, Shard(0)), spec(mesh, R)) > cost(spec(mesh, R), spec(mesh, R)) == 0
    both = init_device_mesh("cpu", (2, 2))
    with pytest.raises(ValueError, match="differ by exactly one placement"):
        cost(spec(both, Shard(0), Shard(1)), spec(both, R, R))
