"""Joining and indexing give what they give on whole tensors."""
from __future__ import annotations

from tensor_cases import P, R, check, every_placement, numbers

import flambeau as torch
from flambeau import distributed as dist
from flambeau.distributed.device_mesh import init_device_mesh
from flambeau.distributed.tensor import Shard


def joining_and_indexing(rank):
    x, y = numbers(8, 5), numbers(8, 5) + 1
    every_placement(lambda a, b: torch.cat([a, b]), x, y)
    every_placement(lambda a, b: torch.stack([a, b], 1), x, y)
    places = torch.tensor([1, 0, 7])
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for p in (Shard(0), Shard(1), R, P):
        check(lambda x, i: x[i], [x, places], mesh, [[p], [R]])
        check(lambda x, i: x.index_select(0, i), [x, places], mesh, [[p], [R]])
        check(lambda x, i: x.gather(1, i), [x, torch.arange(8).view(8, 1) % 5], mesh, [[p], [R]])
        check(lambda x: x.sort(1), [x], mesh, [[p]])
        check(lambda x: x.topk(2, 0), [x], mesh, [[p]])
        check(lambda x: x[x.argmax(0)], [x], mesh, [[p]])
        check(lambda x, i, v: x.index_fill(0, i, v), [x, places, torch.tensor(3.0)], mesh,
              [[p], [R], [R]])
        check(lambda x, i, v: x.index_add(0, i, v), [x, places, numbers(3, 5)], mesh,
              [[p], [R], [R]])


def test_several_processes(processes):
    processes(joining_and_indexing, size=2)
