"""Cross entropy of scores whose classes are shared among processes."""
from __future__ import annotations

import pytest
from tensor_cases import imagined

import flambeau as torch
from flambeau.distributed.device_mesh import init_device_mesh
from flambeau.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from flambeau.distributed.tensor.parallel import (
    loss_parallel,
)
from flambeau.nn import functional as F

R = Replicate()


def whole(tensor):
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def scores_cut_in_many_ways(rank):
    mesh = init_device_mesh("cpu", (2, 2))
    torch.manual_seed(0)
    targets = torch.tensor([1, 4, -100, 0])
    weight = torch.rand(5)
    for options in ({"reduction": "mean"}, {"reduction": "sum"}, {"reduction": "none"},
                    {"weight": weight}):
        for placements in ([Shard(0), Shard(1)], [R, Shard(1)], [Shard(1), Shard(0)]):
            scores = torch.randn(4, 5)              # no even cut
            whole_scores = scores.clone().requires_grad_()
            expected = F.cross_entropy(whole_scores, targets, **options)
            expected.sum().backward()
            given = distribute_tensor(scores, mesh, placements).requires_grad_()
            rows = [R if p == Shard(1) else p for p in placements]
            options = {k: distribute_tensor(v, mesh) if k == "weight" else v
                       for k, v in options.items()}
            with loss_parallel():
                found = F.cross_entropy(given, distribute_tensor(targets, mesh, rows), **options)
                found.full_tensor().sum().backward()
            options = {k: weight if k == "weight" else v for k, v in options.items()}
            torch.testing.assert_close(found.full_tensor(), expected)
            assert given.grad.placements == tuple(placements)
            torch.testing.assert_close(given.grad.full_tensor(), whole_scores.grad)
    line = init_device_mesh("cpu", (4,))
    x = distribute_tensor(torch.randn(3, 10), line, [Shard(1)]).requires_grad_()
    y = whole(x.detach()).requires_grad_()
    weights = torch.randn(3, 10)
    with loss_parallel():
        found = F.log_softmax(x, 1)
        (found.full_tensor() * weights).sum().backward()
    (F.log_softmax(y, 1) * weights).sum().backward()
    torch.testing.assert_close(found.full_tensor(), F.log_softmax(y, 1))
    torch.testing.assert_close(x.grad.full_tensor(), y.grad)


def test_four_processes(processes):
    processes(scores_cut_in_many_ways, size=4)


@pytest.fixture
def mesh():
    """Process 1 of 2, the other imagined."""
    with imagined(2) as found:
        yield found


@pytest.mark.parametrize("cut, target, error, text", [
    (Shard(0), torch.tensor([0, 1]), ValueError, "exactly one mesh dim to shard tensor dim"),
    (Shard(1), torch.tensor([0, 4]), IndexError, "Target 4 is out of bounds"),
])
def test_errors_of_losses(mesh, cut, target, error, text):
    scores = distribute_tensor(torch.ones(2, 4), mesh, [cut], src_data_rank=None)
    with loss_parallel(), pytest.raises(error, match=text):
        F.cross_entropy(scores, target)
