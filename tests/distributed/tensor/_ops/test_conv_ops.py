"""Convolutions and windows: cuts of the batch; of channels, where each is on its own."""
import pytest
from tensor_cases import P, R, check, imagined, numbers, put

import flambeau as torch
from flambeau import distributed as dist
from flambeau.distributed.device_mesh import init_device_mesh
from flambeau.distributed.tensor import Shard
from flambeau.nn import functional as F


def convolutions(rank):
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    x, weight, bias = numbers(4, 2, 5, 5), numbers(3, 2, 3, 3), numbers(3)
    for p in (Shard(0), Shard(1), R, P):
        check(lambda x, w, b: F.conv2d(x, w, b, padding=1), [x, weight, bias], mesh,
              [[p], [R], [R]])
        check(lambda x: F.max_pool2d(x, 2), [x], mesh, [[p]])
        check(lambda x: F.avg_pool2d(x, 2), [x], mesh, [[p]])
    check(lambda x, w: F.conv_transpose2d(x, w, stride=2), [x, numbers(2, 3, 2, 2)], mesh,
          [[Shard(0)], [R]])


def test_two_processes(processes):
    processes(convolutions)


@pytest.mark.parametrize(("function", "cut", "found"), [
    (lambda x: F.conv2d(x, put(torch.ones(3, 4, 1, 1), x.device_mesh, R)), Shard(0), Shard(0)),
    (lambda x: F.conv2d(x, put(torch.ones(3, 4, 1, 1), x.device_mesh, R)), Shard(2), R),
    (lambda x: F.max_pool2d(x, 2), Shard(1), Shard(1)),
    (lambda x: F.max_pool2d(x, 2), Shard(2), R),
    (lambda x: F.avg_pool2d(x, 2), Shard(0), Shard(0))])
def test_placements(function, cut, found):
    with imagined(2) as mesh:
        result = function(put(torch.ones(4, 4, 4, 4), mesh, cut))
        assert result.placements == (found,)
