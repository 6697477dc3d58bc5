"""Collectives between the ranks of one process."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau.distributed._local_tensor import (
    LocalTensorMode,
    maybe_disable_local_tensor_mode,
    rank_map,
)
from flambeau.distributed._local_tensor._c10d import groups_like
from flambeau.testing._internal.distributed.fake_pg import FakeStore

SIZE = 4


@pytest.fixture
def ranks():
    dist.init_process_group("fake", rank=0, world_size=SIZE, store=FakeStore())
    with LocalTensorMode(SIZE) as mode:
        yield mode
    dist.destroy_process_group()


def values(tensor):
    """What each rank has."""
    with maybe_disable_local_tensor_mode():
        return [tensor._local_tensors[rank].tolist() for rank in sorted(tensor._ranks)]


def numbered(*shape):
    return rank_map(lambda rank: torch.full(shape, float(rank)))


def test_groups_beside_a_group(ranks):
    every = frozenset(range(SIZE))
    assert groups_like(dist.new_group([0, 1]), every) == [[0, 1], [2, 3]]
    assert groups_like(dist.new_group([0, 2]), every) == [[0, 2], [1, 3]]
    assert groups_like(dist.group.WORLD, every) == [[0, 1, 2, 3]]
    with pytest.raises(NotImplementedError, match=r"groups like \[0, 1, 2\] do not divide"):
        groups_like(dist.new_group([0, 1, 2]), every)


@pytest.mark.parametrize(("op", "wanted"), [("SUM", 6), ("AVG", 1.5), ("MIN", 0), ("MAX", 3),
                                            ("PRODUCT", 0)])
def test_reductions(ranks, op, wanted):
    x = numbered(2)
    dist.all_reduce(x, getattr(dist.ReduceOp, op))
    assert values(x) == [[wanted] * 2] * SIZE


def test_what_one_has(ranks):
    outputs = [torch.zeros(1) for _ in range(SIZE)]
    dist.gather(numbered(1), outputs, dst=0)
    assert [values(o)[0] for o in outputs] == [[0], [1], [2], [3]]
    part = torch.zeros(2)
    dist.scatter(part, [torch.full((2,), float(i)) for i in range(SIZE)], src=0)
    assert values(part) == [[i, i] for i in range(SIZE)]


def test_parts(ranks):
    outputs = [torch.zeros(1) for _ in range(SIZE)]
    dist.all_to_all(outputs, [rank_map(lambda rank, i=i: torch.tensor([10.0 * rank + i]))
                              for i in range(SIZE)])
    assert values(outputs[1]) == [[10], [11], [12], [13]]
    part = torch.zeros(1)
    dist.reduce_scatter(part, [numbered(1) + i for i in range(SIZE)])
    assert values(part) == [[6 + 4 * i] for i in range(SIZE)]
    with pytest.raises(NotImplementedError, match="all_to_all_single with sizes"):
        dist.all_to_all_single(torch.zeros(4), numbered(4), [1] * 4, [1] * 4)


def test_several_at_once(ranks):
    x, y = numbered(1), numbered(2) + 1
    dist.all_reduce_coalesced([x, y])
    assert values(x) == [[6]] * SIZE and values(y) == [[10, 10]] * SIZE


def test_functional_ops(ranks):
    ops, name, x = torch.ops._c10d_functional, dist.group.WORLD.group_name, numbered(1)
    assert values(ops.broadcast(x, 2, name)) == [[2]] * SIZE
    assert values(ops.all_gather_into_tensor(numbered().view(1), 4, name)) == [[0, 1, 2, 3]] * SIZE
    steps = rank_map(lambda rank: torch.arange(4.0) + 10 * rank)
    assert values(ops.all_to_all_single(steps, [1] * 4, [1] * 4, name))[1] == [1, 11, 21, 31]
    assert values(x) == [[0], [1], [2], [3]]            # not in place
    with pytest.raises(NotImplementedError, match="uneven sizes"):
        ops.all_to_all_single(steps, [2, 1, 1, 0], [2, 1, 1, 0], name)
