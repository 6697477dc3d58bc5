"""Reductions, softmax, normalisation and losses give what they give on whole tensors."""
from __future__ import annotations

import pytest
from tensor_cases import P, R, check, every_placement, numbers

import flambeau as torch
from flambeau import distributed as dist
from flambeau.distributed.device_mesh import init_device_mesh
from flambeau.distributed.tensor import Shard
from flambeau.nn import functional as F


def reductions(rank):
    x = numbers(8, 5)
    for function in (torch.sum, lambda x: x.sum(0), lambda x: x.sum(1, keepdim=True), torch.mean,
                     lambda x: x.mean(0), torch.max, lambda x: x.amax(1), lambda x: x.min(0)[0],
                     lambda x: x.var(0), torch.std, lambda x: x.argmax(1), torch.linalg.vector_norm,
                     lambda x: torch.linalg.vector_norm(x, 1, dim=0), lambda x: x.softmax(0),
                     lambda x: x.log_softmax(1), lambda x: x.logsumexp(1), lambda x: (x > 0).all(),
                     lambda x: (x > 1).any(0), lambda x: x.cumsum(0), lambda x: x.prod(1),
                     lambda x: torch.linalg.vector_norm(x, float("inf"))):
        every_placement(function, x)


def layers(rank):
    x = numbers(8, 4, 6)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for p in (Shard(0), Shard(1), Shard(2), R, P):
        check(lambda x, w, b: F.layer_norm(x, (6,), w, b), [x, numbers(6), numbers(6)], mesh,
              [[p], [R], [R]])
        check(lambda x, w: F.rms_norm(x, (6,), w), [x, numbers(6)], mesh,
              [[p if p != P and p != Shard(2) else R], [R]])
        if p != Shard(2):
            check(lambda x, w: F.group_norm(x, 2, w), [x, numbers(4)], mesh, [[p], [R]])
    for p, q in ((R, Shard(0)), (R, Shard(1)), (Shard(0), R), (R, R)):
        check(F.embedding, [torch.tensor([[0, 3], [9, 1], [2, 5], [8, 8]]), numbers(10, 8)], mesh,
              [[p], [q]])
    targets = torch.arange(8) % 6
    targets[:3] = -100                                          # ignored
    for p, q in ((Shard(0), R), (Shard(0), Shard(0)), (Shard(1), R), (R, R), (P, R)):
        for reduction in ("mean", "sum", "none"):
            check(lambda s, t, r=reduction: F.cross_entropy(s, t, reduction=r),
                  [numbers(8, 6), targets], mesh, [[p], [q]])
    for p in (Shard(0), Shard(1), R, P):
        for loss in (F.mse_loss, F.l1_loss, F.binary_cross_entropy_with_logits, F.smooth_l1_loss):
            check(loss, [numbers(8, 4), numbers(8, 4) + 1], mesh, [[p], [Shard(0)]])
    check(lambda x, w, b: F.conv2d(x, w, b, padding=1), [numbers(4, 2, 5, 5), numbers(3, 2, 3, 3),
                                                        numbers(3)], mesh, [[Shard(0)], [R], [R]])
    check(lambda x: F.max_pool2d(x, 2), [numbers(4, 2, 6, 6)], mesh, [[Shard(0)]])


@pytest.mark.parametrize("work, size", [(reductions, 3), (layers, 2)])
def test_several_processes(processes, work, size):
    processes(work, size=size)
