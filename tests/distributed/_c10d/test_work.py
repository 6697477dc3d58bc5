"""Collectives that have been started: how to wait for them, and what they say."""
from __future__ import annotations

import threading
from datetime import timedelta

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau.distributed._c10d.work import OpType, Work


def test_a_collective_of_one_process(alone):
    x = torch.ones(2)
    work = dist.all_reduce(x, async_op=True)
    assert work.wait() and work.is_completed() and work.get_future().wait()[0] is x


def futures_of_collectives(rank):
    """Who waits for a future moves the collective on, also what follows it."""
    x = torch.full((100_000,), float(rank))
    work = dist.all_reduce(x, async_op=True)
    twice = work.get_future().then(lambda done: done.value()[0] * 2)
    again = twice.then(lambda done: done.value().sum().item())
    assert again.wait() == 2 * 3 * 100_000 and twice.done() and work.is_success()
    futures = [dist.all_reduce(torch.ones(3), async_op=True).get_future() for _ in range(4)]
    assert [v[0].tolist() for v in torch.futures.wait_all(futures)] == [[3.0] * 3] * 4


def test_futures(processes):
    processes(futures_of_collectives, size=3)


def test_what_it_says(alone):
    x = torch.ones(2)
    work = dist.all_reduce(x, async_op=True)
    assert work.wait(timedelta(seconds=1)) and work.is_success() and work.exception() is None
    assert work.result()[0].tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match=r"sourceRank\(\) may only be called on work objects"):
        work.source_rank()
    assert work.get_future().value()[0].tolist() == [1.0, 1.0]


def test_work_that_is_done_later():
    """As a backend ends it; the calls that wait in other threads go on."""
    made = Work(["x"], done=False)
    later = made.get_future().then(lambda done: done.value() + ["y"])
    assert not made.is_completed() and not later.done()
    with pytest.raises(RuntimeError, match="Timed out waiting 10ms for operation to complete"):
        made.wait(timedelta(milliseconds=10))
    threading.Timer(0.02, made._finish, (None,)).start()
    assert made.wait() and made.is_success() and later.wait() == ["x", "y"]
    assert made.result() == ["x"] and made.get_future_result().wait() == 0


def test_work_that_fails():
    made = Work(done=False)
    future = made.get_future()
    made._finish(RuntimeError("gone"))
    assert made.is_completed() and not made.is_success() and str(made.exception()) == "gone"
    for call in (made.wait, made.synchronize, made.result, future.wait, made.get_future().wait):
        with pytest.raises(RuntimeError, match="gone"):
            call()


def test_kinds():
    assert int(OpType.BARRIER) == 15 and int(OpType.UNKNOWN) == 100
    assert [kind.value for kind in (OpType.BROADCAST, OpType.ALLREDUCE, OpType.COALESCED)] == [
        0, 1, 17]
