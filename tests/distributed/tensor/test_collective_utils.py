"""Collectives on the processes along one dimension of a mesh, and what they cost."""
import pytest
from tensor_cases import P, R, imagined, spec

import flambeau as torch
from flambeau.distributed.device_mesh import init_device_mesh
from flambeau.distributed.tensor import Shard
from flambeau.distributed.tensor import _collective_utils as utils


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("count", [0, 2])
def test_longer_and_shorter(dim, count):
    x = torch.arange(6.0).view(2, 3)
    longer = utils.pad_tensor(x, dim, count)
    assert longer.shape[dim] == x.shape[dim] + count and longer.sum() == x.sum()
    assert torch.equal(utils.unpad_tensor(longer, dim, count), x)
    assert (longer is x) is (count == 0)


def test_empty_pieces():
    x = [torch.ones(2, 3)]
    found = utils.fill_empty_tensor_to_shards(x, 1, 2)
    assert [tuple(t.shape) for t in found] == [(2, 3), (2, 0), (2, 0)]
    assert utils.fill_empty_tensor_to_shards(x, 1, 0) is x


def test_costs():
    with imagined(4) as mesh:
        topo = utils.MeshTopoInfo.build_from_mesh(mesh)
        assert topo.mesh_dim_devices == [4]
        small, large = (utils.allgather_cost(size, topo, 0) for size in (0.1, 1.0))
        assert 0 < small < large
        assert utils.allreduce_cost(1.0, topo, 0) > large
        cut, whole, terms = (spec(mesh, (8, 8), p) for p in (Shard(0), R, P))
        assert utils.spec_to_bytes(cut) == 256
        cost = utils.redistribute_cost
        assert cost(whole, cut) == cost(cut, cut) == 0.0
        assert 0 < cost(cut, whole) < cost(terms, whole)
        assert cost(cut, terms) == float("inf")
        assert cost(cut, spec(init_device_mesh("cpu", (2, 2)), (8, 8), R, R)) == float("inf")


def test_metas_send_nothing():
    with imagined(4) as mesh:
        x = torch.empty(2, device="meta")
        assert utils.mesh_scatter(x, [x] * 4, mesh) is utils.mesh_broadcast(x, mesh) is None


def along_a_dimension(rank):
    mesh = init_device_mesh("cpu", (2, 2))
    row, column = divmod(rank, 2)
    x = torch.full((2,), float(rank))
    utils.mesh_broadcast(x, mesh, 1, group_src=1)
    assert x.tolist() == [2 * row + 1] * 2
    out = torch.zeros(2)
    utils.mesh_scatter(out, [torch.full((2,), 10.0 * i + column) for i in range(2)], mesh, 0)
    assert out.tolist() == [10 * row + column] * 2
    whole = torch.arange(16.0).view(4, 4)
    found = utils.shard_dim_alltoall(whole.chunk(2)[column], 0, 1, mesh, 1)
    assert torch.equal(found, whole.chunk(2, 1)[column])


def test_four_processes(processes):
    processes(along_a_dimension, size=4)
