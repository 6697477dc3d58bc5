"""Collectives as ops of `torch.ops._c10d_functional`, which give new tensors."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau.testing._internal.distributed.fake_pg import FakeStore

ops = torch.ops._c10d_functional


@pytest.fixture
def name(alone):
    return dist.group.WORLD.group_name


@pytest.fixture
def four():
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=4)
    yield dist.group.WORLD.group_name
    dist.destroy_process_group()


def test_new_tensors(name):
    x = torch.arange(4.0).view(2, 2)
    for found in (ops.all_reduce(x, "sum", name), ops.broadcast(x, 0, name),
                  ops.all_gather_into_tensor(x, 1, name), ops.all_to_all_single(x, [2], [2], name),
                  ops.reduce_scatter_tensor(x.t(), "max", 1, name).t(),
                  *ops.all_reduce_coalesced([x, x], "avg", name)):
        found = ops.wait_tensor(found)
        assert torch.equal(found, x) and found.data_ptr() != x.data_ptr()
    assert ops.all_reduce_(x, "sum", name).data_ptr() == x.data_ptr()


def test_sizes(four):
    x = torch.zeros(4, 3)
    assert ops.all_gather_into_tensor(x, 4, four).shape == (16, 3)
    assert ops.reduce_scatter_tensor(x, "sum", 4, four).shape == (1, 3)
    assert ops.all_to_all_single(x, [2, 0, 0, 0], [1, 1, 1, 1], four).shape == (2, 3)
    assert [t.shape for t in ops.all_gather_into_tensor_coalesced([x, x[0]], 4, four)] == [
        (16, 3), (12,)]


@pytest.mark.parametrize(("call", "words"), [
    (lambda x, name: ops.all_reduce(x, "SUM", name), "Unrecognized reduce_op: SUM"),
    (lambda x, name: ops.all_reduce(x, "sum", "of nobody"), "of nobody")])
def test_refusals(name, call, words):
    with pytest.raises((RuntimeError, ValueError), match=words):
        call(torch.ones(2), name)


def gradient(call, x):
    x = x.clone().requires_grad_()
    found = call(x)
    (found * torch.arange(1.0, found.numel() + 1).view(found.shape)).sum().backward()
    return x.grad.tolist()


def test_gradients_go_back_by_the_other_collective(name):
    x = torch.ones(3)
    for call in (lambda x: ops.all_reduce(x, "sum", name),
                 lambda x: ops.all_gather_into_tensor(x, 1, name),
                 lambda x: ops.reduce_scatter_tensor(x, "sum", 1, name),
                 lambda x: ops.all_to_all_single(x, [3], [3], name)):
        assert gradient(lambda x: ops.wait_tensor(call(x)), x) == [1, 2, 3]     # noqa: B023
    with pytest.raises(RuntimeError, match="all_reduce backward only supports 'sum' reduction"):
        gradient(lambda x: ops.all_reduce(x, "max", name), x)


def test_gradients_of_second_order(name):
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    once, = torch.autograd.grad(ops.all_reduce(x ** 3, "sum", name).sum(), x, create_graph=True)
    twice, = torch.autograd.grad(once.sum(), x)
    assert once.tolist() == [12, 27] and twice.tolist() == [12, 18]


def test_the_older_names(name):
    """They name a group by its tag, its members and its size."""
    older, x = torch.ops.c10d_functional, torch.arange(3.0)
    for found in (older.all_reduce(x, "sum", "", [0], 1), older.broadcast(x, 0, "", [0], 1),
                  older.all_gather_into_tensor(x, "", [0], 1),
                  older.reduce_scatter_tensor(x, "sum", "", [0], 1),
                  older.all_to_all_single(x, None, None, "", [0], 1)):
        assert older.wait_tensor(found).tolist() == [0, 1, 2]
