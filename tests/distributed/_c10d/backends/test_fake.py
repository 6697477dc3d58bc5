"""Processes that are imagined."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau._C import _distributed_c10d as c
from flambeau.testing._internal.distributed.fake_pg import FakeStore


def test_the_other_processes_can_be_imagined():
    dist.init_process_group("fake", store=FakeStore(), rank=1, world_size=4)
    try:
        whole = torch.empty(8)
        dist.all_gather_into_tensor(whole, torch.arange(2.0))
        assert whole.tolist() == [0.0, 1.0] * 4 and dist.get_rank() == 1
        half = dist.new_group([0, 1])
        assert half.size() == 2 and dist.get_backend(half) == "fake"
        dist.barrier()
    finally:
        dist.destroy_process_group()


@pytest.fixture
def four():
    dist.init_process_group("fake", store=FakeStore(), rank=2, world_size=4)
    yield dist.group.WORLD
    dist.destroy_process_group()


def test_what_the_others_have(four):
    """Collectives that gather find this process's values everywhere; others leave them."""
    x = torch.arange(2.0)
    parts = [torch.zeros(2) for _ in range(4)]
    dist.all_gather(parts, x)
    assert [p.tolist() for p in parts] == [[0.0, 1.0]] * 4
    for call in (lambda: dist.all_reduce(x), lambda: dist.broadcast(x, 0),
                 lambda: dist.reduce(x, 1), lambda: dist.barrier(), lambda: dist.send(x, 0)):
        assert call() is None
    assert x.tolist() == [0.0, 1.0]


def test_work_is_done_at_once(four):
    work = dist.all_reduce(torch.ones(1), async_op=True)
    assert work.wait()
    assert type(work).__name__ == "FakeWork" and work.get_future().done()


def test_groups_of_imagined_processes(four):
    mine, every = dist.new_subgroups(2)
    assert dist.get_process_group_ranks(mine) == [2, 3] and len(every) == 2
    assert (mine.rank(), mine.size(), dist.get_backend(mine)) == (0, 2, "fake")
    assert dist.new_group([0, 1]) == dist.GroupMember.NON_GROUP_MEMBER


def test_errors_on_demand():
    options = c.FakeProcessGroup.Options()
    assert (options.fake_option, options.error_on_collective) == (0, False)
    options.error_on_collective = True
    group = c.FakeProcessGroup._create_internal(0, 2, options)
    with pytest.raises(RuntimeError, match="FakeProcessGroup collective operation error"):
        group.allreduce([torch.ones(1)])
