"""Collectives that are collected first and run together."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau.distributed import distributed_c10d as c10d


def collected_calls(rank):
    first, second = torch.ones(2), torch.ones(3) * rank
    with c10d._coalescing_manager(async_ops=True) as manager:
        assert dist.all_reduce(first) is None
        work = dist.all_reduce(second, async_op=True)
        with pytest.raises(ValueError, match="Illegal to call wait"):
            work.wait()
    manager.wait()
    assert first.tolist() == [2.0, 2.0] and second.tolist() == [1.0] * 3
    whole, part = torch.empty(4), torch.empty(2)
    with c10d._coalescing_manager():
        dist.all_gather_into_tensor(whole, torch.ones(2) * rank)
    with c10d._coalescing_manager():
        dist.reduce_scatter_tensor(part, torch.arange(4.0))
    assert whole.tolist() == [0.0, 0.0, 1.0, 1.0]
    assert part.tolist() == ([0.0, 2.0] if rank == 0 else [4.0, 6.0])
    assert not c10d._world.pg_coalesce_state


def test_two_processes(processes):
    processes(collected_calls)


def test_collectives_of_one_kind(alone):
    x, y = torch.ones(2), torch.ones(3)
    with c10d._coalescing_manager(async_ops=True) as manager:
        assert dist.all_reduce(x) is None and dist.all_reduce(y) is None
        assert manager.works == []                      # they run at the end
    assert len(manager.works) == 1 and not c10d._world.pg_coalesce_state
    with pytest.raises((AssertionError, RuntimeError), match="support mixed collectives"), \
            c10d._coalescing_manager():
        dist.all_reduce(x)
        dist.all_gather_into_tensor(torch.empty(2), x)
    assert not c10d._world.pg_coalesce_state


def test_nothing_to_run(alone):
    with c10d._coalescing_manager() as manager:
        pass
    assert manager.works == []
    manager.append(None)
    manager.wait()


def test_work_that_is_none(alone):
    with c10d._coalescing_manager():
        work = dist.all_reduce(torch.ones(1), async_op=True)
        for name in ("is_success", "exception", "wait", "result", "synchronize", "source_rank"):
            with pytest.raises(ValueError, match=f"Illegal to call {name} on IllegalWork object"):
                getattr(work, name)()
