"""Each process runs an op on its piece."""
from __future__ import annotations

import pytest
from tensor_cases import R, every_placement, imagined, numbers, put

import flambeau as torch
from flambeau import distributed as dist
from flambeau.distributed.device_mesh import init_device_mesh
from flambeau.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from flambeau.nn import functional as F


def tensors_that_ops_make_on_the_way(rank):
    """What a composite or a derivative makes is as good as a distributed tensor."""
    x, square = numbers(6, 4), numbers(4, 4)
    for function in (lambda x: x[[0, 2]], lambda x: x[x.shape[0] - 1, [1, 0]],
                     lambda x: torch.combinations(x[:, 0]), lambda x: x.logcumsumexp(0),
                     lambda x: x.renorm(2, 0, 0.5), lambda x: x.renorm(2, 1, 0.5),
                     lambda x: torch.fft.fft(x, 3, 0).abs(), lambda x: torch.fft.irfft(x, 5)):
        every_placement(function, x, partial=False)
    for function in (torch.trace, torch.logdet, lambda x: torch.linalg.pinv(x, torch.tensor(0.1))):
        every_placement(function, square @ square.t() + torch.eye(4), partial=False)
    every_placement(lambda x: torch.view_as_complex(x).abs(), numbers(4, 2))
    every_placement(lambda x: x.squeeze(()), numbers(2, 1))
    every_placement(lambda x: x.squeeze(-1), torch.tensor(2.))
    unbatched = numbers(2, 8, 6)
    for function in (lambda x: F.adaptive_avg_pool2d(x, 3), lambda x: F.max_pool2d(x, 2)):
        every_placement(function, unbatched, limit=3, partial=False)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    with pytest.raises(RuntimeError, match=r"got mixed torch.Tensor and DTensor"):
        torch.mul(distribute_tensor(x, mesh, [R]), x)
    limit = distribute_tensor(torch.tensor(9.), mesh, [R])
    assert torch.linalg.matrix_rank(distribute_tensor(square, mesh, [R]), atol=limit).item() == 0


def test_several_processes(processes):
    processes(tensors_that_ops_make_on_the_way, size=2)


@pytest.fixture
def mesh():
    """Process 1 of 2, the other imagined."""
    with imagined(2) as found:
        yield found


def test_meshes_have_to_be_the_same(mesh):
    other = init_device_mesh("cpu", (1, 2))
    with pytest.raises(RuntimeError, match="different mesh"):
        put(torch.ones(4), mesh, Shard(0)) + put(torch.ones(4), other, Replicate(), Shard(0))


def test_ops_that_are_not_run_piece_by_piece(mesh):
    x = put(torch.ones(4, 2), mesh, Shard(0))
    assert torch.equal(x, x.clone()) and not torch.equal(x, put(torch.ones(4), mesh, Shard(0)))
    assert not x.is_pinned()
    with pytest.raises(RuntimeError, match="as_strided"):
        x.as_strided((4,), (2,))


def test_placements_of_writes_stay(mesh):
    x = put(torch.ones(4, 2), mesh, Shard(0))
    assert x.add_(1) is x and x.placements == (Shard(0),) and (x.to_local() == 2).all()
    out = put(torch.zeros(4, 2), mesh, Shard(0))
    assert torch.add(x, x, out=out) is out and isinstance(out, DTensor)
    assert out.to_local().tolist() == [[4, 4]] * 2
    with pytest.raises(RuntimeError, match="in-place operations that require placement changes"):
        put(torch.ones(4, 2), mesh, Shard(0)).cumsum_(0)
