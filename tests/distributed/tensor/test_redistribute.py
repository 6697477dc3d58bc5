"""From every placement to every other, of tensors that the processes share evenly or not."""
from __future__ import annotations

import itertools
import random

import pytest

import flambeau as torch
from flambeau.distributed.device_mesh import init_device_mesh
from flambeau.distributed.tensor import Partial, Replicate, Shard, distribute_tensor
from flambeau.distributed.tensor._utils import compute_local_shape_and_global_offset

SOURCES = [Replicate(), Partial(), Shard(0), Shard(1)]
TARGETS = [Replicate(), Shard(0), Shard(1)]
SHAPES = [(6, 4), (5, 7), (1, 3), (2, 1), (0, 3), (7, 2, 3)]


def check(x, mesh, source, target):
    """The values stay; the piece is the one that belongs here; gradients come back as they went."""
    d = distribute_tensor(x, mesh, source).requires_grad_()
    moved = d.redistribute(mesh, target)
    shape, offset = compute_local_shape_and_global_offset(x.shape, mesh, target)
    wanted = x[tuple([slice(o, o + n) for o, n in zip(offset, shape)])]
    said = f"{tuple(x.shape)} {source} -> {target}"
    assert moved.placements == tuple(target), said
    torch.testing.assert_close(moved.to_local(), wanted.reshape(shape), msg=said)
    torch.testing.assert_close(moved.full_tensor(), x, msg=said)
    weights = torch.arange(1.0, x.numel() + 1).view(x.shape)
    (moved * distribute_tensor(weights, mesh, target)).sum().redistribute(
        mesh, [Replicate()] * mesh.ndim).to_local().backward()
    torch.testing.assert_close(d.grad.full_tensor(), weights, msg=said)


def all_pairs(rank, size):
    mesh = init_device_mesh("cpu", (size,))
    for shape in SHAPES:
        x = torch.arange(1.0, 1 + torch.Size(shape).numel()).view(shape)
        for source, target in itertools.product(SOURCES, TARGETS):
            check(x, mesh, [source], [target])


def drawn_pairs(rank):
    """Of two dimensions of a mesh there are too many: the same ones are drawn in all processes."""
    mesh = init_device_mesh("cpu", (2, 2))
    draw = random.Random(0)
    for _ in range(40):
        shape = [draw.randint(1, 6), draw.randint(1, 6)]
        x = torch.arange(1.0, 1 + shape[0] * shape[1]).view(shape)
        check(x, mesh, draw.choices(SOURCES, k=2), draw.choices(TARGETS, k=2))


@pytest.mark.parametrize("size", [2, 3])
def test_every_pair(processes, size):
    processes(all_pairs, size, size=size)


def test_pairs_of_two_dimensions(processes):
    processes(drawn_pairs, size=4)
