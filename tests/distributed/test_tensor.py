"""Distributed tensors in a mesh of one process."""
import pytest

import flambeau as torch
from flambeau.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_module,
    distribute_tensor,
    zeros,
)
from flambeau.distributed.tensor._utils import compute_local_shape_and_global_offset


class Mesh:
    """Process 1 of 3."""

    ndim = 1

    def size(self, dim=None):
        return 3

    def get_coordinate(self):
        return (1,)


@pytest.fixture
def mesh():
    return Mesh()


def test_the_process_has_the_whole(mesh):
    x = torch.arange(4.0).view(2, 2)
    d = distribute_tensor(x, mesh, [Shard(-1)])
    assert isinstance(d, DTensor) and d.placements == (Shard(1),) and d.device_mesh is mesh
    assert type(d.to_local()) is torch.Tensor and torch.equal(d.full_tensor(), x)
    assert "placements=(Shard(dim=1),)" in repr(d)
    again = d.redistribute(placements=[Replicate()])
    assert again.placements == (Replicate(),) and torch.equal(again.to_local(), x)


def test_operations_give_placed_tensors_and_gradients_reach_the_local_one(mesh):
    x = torch.ones(2, 2, requires_grad=True)
    d = DTensor.from_local(x, mesh, [Replicate()])
    y = (d * 3).sum()
    assert isinstance(y, DTensor) and y.device_mesh is mesh and y.placements == (Replicate(),)
    y.backward()
    assert torch.equal(x.grad, torch.full((2, 2), 3.0))


def test_a_module_is_distributed(mesh):
    module = distribute_module(torch.nn.Linear(2, 3), mesh)
    assert isinstance(module.weight, DTensor) and module.weight.requires_grad
    out = module(torch.ones(1, 2))
    out.sum().backward()
    assert module.weight.grad.shape == (3, 2)
    assert isinstance(zeros(2, 3, device_mesh=mesh, placements=[Shard(0)]), DTensor)


def test_pieces():
    assert [Shard.local_shard_size_and_offset(5, 3, rank) for rank in range(3)] == [
        (2, 0), (2, 2), (1, 4)]
    assert compute_local_shape_and_global_offset((5, 4), Mesh(), [Shard(0)]) == ((2, 4), (2, 0))


def test_placements():
    assert Shard(1).is_shard(1) and not Shard(1).is_shard(0) and str(Shard(1)) == "S(1)"
    assert Partial().is_partial() and repr(Partial("avg")) == "Partial(avg)"
    assert Replicate() == Replicate() != Shard(0)


def test_refusals(mesh):
    with pytest.raises(ValueError, match="`placements` must have the same length"):
        distribute_tensor(torch.ones(2), mesh, [Shard(0), Shard(0)])
    with pytest.raises(RuntimeError, match="leaf"):
        distribute_tensor(torch.ones(2, requires_grad=True) * 2, mesh)


def test_the_older_name_is_the_same_module():
    from flambeau.distributed._tensor.experimental import implicit_replication

    from flambeau.distributed import _tensor, tensor
    from flambeau.distributed.tensor import experimental
    assert _tensor.DTensor is tensor.DTensor
    assert implicit_replication is experimental.implicit_replication
