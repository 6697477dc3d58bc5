"""The program of several ranks in one process."""
from __future__ import annotations

import pytest

import flambeau
from flambeau import distributed as dist
from flambeau import nn
from flambeau.distributed import _functional_collectives as funcol
from flambeau.distributed._local_tensor import (
    LocalTensor,
    LocalTensorMode,
    enabled_local_tensor_mode,
    local_tensor_mode,
    maybe_disable_local_tensor_mode,
    maybe_run_for_local_tensor,
    rank_map,
    reconcile_args,
    tensor_map,
)
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
    return rank_map(lambda rank: flambeau.full(shape, float(rank)))


def test_ops_compute_for_each_rank(ranks):
    assert local_tensor_mode() is ranks
    x = numbered(2)
    assert values(x * 2 + 1) == [[1, 1], [3, 3], [5, 5], [7, 7]]
    assert values((x + flambeau.ones(2)).sum()) == [2, 4, 6, 8]
    x[0] = 5
    assert values(x) == [[5, 0], [5, 1], [5, 2], [5, 3]]
    first, _ = x.split(1)
    assert values(first) == [[5]] * 4
    assert values(tensor_map(x, lambda rank, t: t + rank)) == [[5, 0], [6, 2], [7, 4], [8, 6]]
    assert repr(numbered(1)).split("\n")[2] == "  1: tensor([1.]),"
    assert x._local_tensor_2.tolist() == [5, 2]
    with pytest.raises(AttributeError, match="Local tensor has no knowledge of rank 9"):
        x._local_tensor_9


def test_random_numbers_are_the_same_for_all(ranks):
    flambeau.manual_seed(0)
    x = flambeau.randn(3)
    assert x.reconcile().shape == (3,)
    assert not flambeau.equal(flambeau.randn(3).reconcile(), x.reconcile())


def test_numbers_have_to_agree(ranks):
    x, same = numbered(2), flambeau.ones(2)
    assert same.tolist() == [1, 1] and bool(same.sum() == 2) and same.numpy().sum() == 2
    assert reconcile_args((same, 3))[0][1] == 3
    with pytest.raises(AssertionError, match="must be the same to reconcile"):
        x.reconcile()
    with pytest.raises(RuntimeError, match="Cannot convert local tensor to list"):
        x.tolist()
    with pytest.raises(RuntimeError, match="cannot be converted to Scalar"):
        x.item()


def test_gradients(ranks):
    x = rank_map(lambda rank: flambeau.tensor([float(rank + 1)])).requires_grad_()
    (x * x).sum().backward()
    assert values(x.grad) == [[2], [4], [6], [8]]
    model = nn.Linear(2, 1)
    model(numbered(3, 2)).sum().backward()
    assert [grad[0] for grad in values(model.weight.grad)] == [[3.0 * r] * 2 for r in range(4)]


def test_collectives(ranks):
    x = numbered(2)
    for op, wanted in ((dist.ReduceOp.SUM, 6), (dist.ReduceOp.MAX, 3), (dist.ReduceOp.AVG, 1.5)):
        y = x.clone()
        dist.all_reduce(y, op=op)
        assert values(y) == [[wanted] * 2] * 4
    y = x.clone()
    dist.broadcast(y, 2)
    assert values(y) == [[2, 2]] * 4
    parts = [flambeau.zeros(2) for _ in range(4)]
    dist.all_gather(parts, x)
    assert [values(part)[0] for part in parts] == [[float(rank)] * 2 for rank in range(4)]
    whole = flambeau.zeros(8)
    dist.all_gather_into_tensor(whole, x)
    assert values(whole) == [[0, 0, 1, 1, 2, 2, 3, 3]] * 4
    steps = rank_map(lambda rank: flambeau.arange(8.) + rank)
    part = flambeau.zeros(2)
    dist.reduce_scatter_tensor(part, steps)
    assert values(part) == [[6, 10], [14, 18], [22, 26], [30, 34]]
    dist.all_to_all_single(whole, steps)
    assert values(whole)[1] == [2, 3, 3, 4, 4, 5, 5, 6]
    dist.reduce(y, 1)
    assert values(y) == [[2, 2], [8, 8], [2, 2], [2, 2]]
    dist.barrier()


def test_functional_collectives(ranks):
    world, x = dist.group.WORLD, numbered(2)
    steps = rank_map(lambda rank: flambeau.arange(8.) + rank)
    assert values(funcol.all_reduce(x, "sum", world) + 0) == [[6, 6]] * 4
    assert values(funcol.all_gather_tensor(x, 0, world) + 0) == [[0, 0, 1, 1, 2, 2, 3, 3]] * 4
    found = funcol.reduce_scatter_tensor(steps, "avg", 0, world)
    assert values(found + 0) == [[1.5, 2.5], [3.5, 4.5], [5.5, 6.5], [7.5, 8.5]]


def test_a_group_stands_for_those_beside_it(ranks):
    x = numbered(1)
    dist.all_reduce(x, group=dist.new_group([0, 2]))
    assert values(x) == [[2], [4], [2], [4]]


def test_disabled(ranks):
    with ranks.disable():
        assert enabled_local_tensor_mode() is None and local_tensor_mode() is ranks
        assert type(flambeau.ones(2)) is flambeau.Tensor
    assert type(flambeau.ones(2)) is LocalTensor


def test_functions_run_for_each_rank(ranks):
    @maybe_run_for_local_tensor
    def total(x, factor):
        assert type(x) is flambeau.Tensor
        return x.sum() * factor
    assert values(total(numbered(2), 2)) == [0, 4, 8, 12]
    with ranks.disable():
        assert total(flambeau.ones(2), 2) == 4


def test_without_a_mode():
    x = LocalTensor({0: flambeau.ones(2), 3: flambeau.zeros(2)})
    assert values(x + 1) == [[2, 2], [1, 1]]
    assert enabled_local_tensor_mode() is None
    with pytest.raises(ValueError, match="LocalTensor cannot be empty!"):
        LocalTensor({})
    with pytest.raises(AssertionError, match="must have the same dtype"):
        LocalTensor({0: flambeau.ones(1), 1: flambeau.ones(1, dtype=flambeau.int)})
    with pytest.raises(NotImplementedError, match="different shapes"):
        LocalTensor({0: flambeau.ones(1), 1: flambeau.ones(2)})
    with pytest.raises(AssertionError, match="expected a number of ranks"):
        LocalTensorMode("x")
