"""Which placements a call needs, and which it gives."""
from __future__ import annotations

import itertools

from tensor_cases import P, R, check, numbers

import flambeau as torch
from flambeau.distributed.device_mesh import init_device_mesh
from flambeau.distributed.tensor import Shard


def meshes_of_two_dimensions(rank):
    mesh = init_device_mesh("cpu", (2, 2))
    x, y = numbers(8, 6), numbers(6, 8)
    kinds = [Shard(0), Shard(1), R, P]
    for p in itertools.product(kinds, kinds):
        for function in (torch.relu, lambda x: x.sum(0), lambda x: x.softmax(1), lambda x: x * 2,
                         lambda x: x.view(4, 2, 6), lambda x: x.mean()):
            check(function, [x], mesh, [p])
        if p != (Shard(1), P) and p != (P, Shard(1)):
            check(lambda x: x.reshape(48), [x], mesh, [p])
        check(torch.mm, [x, y], mesh, [p, (R, Shard(1))])
        check(torch.add, [x, y.t()], mesh, [p, (Shard(0), R)])


def test_several_processes(processes):
    processes(meshes_of_two_dimensions, size=4)
