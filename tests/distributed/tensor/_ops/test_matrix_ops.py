"""Products give what they give on whole matrices."""
from __future__ import annotations

from tensor_cases import P, R, check, every_placement, numbers

import flambeau as torch
from flambeau import distributed as dist
from flambeau.distributed.device_mesh import init_device_mesh
from flambeau.distributed.tensor import Shard
from flambeau.nn import functional as F


def products(rank):
    a, b = numbers(6, 5), numbers(5, 8)
    every_placement(torch.mm, a, b)
    every_placement(lambda x, w: F.linear(x, w), numbers(4, 6, 5), numbers(7, 5))
    every_placement(torch.bmm, numbers(4, 3, 5), numbers(4, 5, 4), limit=3)
    every_placement(lambda m, v: m @ v, a, numbers(5))
    every_placement(lambda x, w: torch.einsum("bij,jk->bik", x, w), numbers(4, 3, 5), b)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for p in ([Shard(0)], [R], [P]):
        for q in ([Shard(0)], [Shard(1)], [R]):
            check(F.linear, [numbers(6, 5), numbers(8, 5), numbers(8)], mesh,
                  [p, q, [R] if q[0] == Shard(1) else q])
    heads = numbers(2, 4, 5, 3)
    for p in (Shard(0), Shard(1), R, P):
        check(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
              [heads, heads + 1, heads - 1], mesh, [[p]] * 3)


def test_several_processes(processes):
    processes(products, size=2)
