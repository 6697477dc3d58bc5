"""Collectives over TCP: groups of one, and of several whose ends are in one process."""
from __future__ import annotations

import threading
from datetime import timedelta

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau.distributed._c10d.backends.gloo import reduced

SECONDS = timedelta(seconds=10)
SIZE = 3


@pytest.fixture
def every():
    """`every(call)`: what `call(group, rank)` gives at each end of a group, one in each thread."""
    store, groups = dist.HashStore(), [None] * SIZE

    def run(call):
        found = [None] * SIZE

        def one(rank):
            try:
                found[rank] = call(groups[rank], rank)
            except Exception as error:
                found[rank] = error
        threads = [threading.Thread(target=one, args=(rank,)) for rank in range(SIZE)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        return found

    def connect(_, rank):
        groups[rank] = dist.ProcessGroupGloo(store, rank, SIZE, SECONDS)
    run(connect)
    yield run
    for group in groups:
        group.shutdown()


@pytest.mark.parametrize(("op", "values", "wanted"), [
    ("SUM", [1.0, 2.0, 4.0], 7.0), ("PRODUCT", [1.0, 2.0, 4.0], 8.0), ("MIN", [3, 1, 2], 1),
    ("MAX", [3, 1, 2], 3), ("BAND", [6, 7, 3], 2), ("BOR", [1, 2, 4], 7), ("BXOR", [1, 3, 4], 6)])
def test_reductions(every, op, values, wanted):
    assert reduced([torch.tensor([v]) for v in values], op).item() == wanted

    def call(group, rank):
        x = torch.tensor([values[rank]] * 4)
        group.allreduce([x], getattr(dist.ReduceOp, op)).wait()
        return x.tolist()
    assert every(call) == [[wanted] * 4] * SIZE


def test_all_get_the_same_bits(every):
    """Sums of floats depend on their order, which is the same everywhere."""
    parts = [torch.randn(1001, generator=torch.Generator().manual_seed(i)) for i in range(SIZE)]

    def call(group, rank):
        x = parts[rank].clone()
        group.allreduce([x]).wait()
        return x
    found = every(call)
    assert all(torch.equal(found[0], f) for f in found)
    torch.testing.assert_close(found[0], sum(parts))


def test_means_and_roots(every):
    def call(group, rank):
        mean, mine = torch.full((2,), float(rank)), torch.full((1,), float(rank))
        group.allreduce([mean], dist.ReduceOp.AVG).wait()
        group.broadcast(mine, root=2).wait()
        kept = torch.full((1,), float(rank + 1))
        group.reduce(kept, root=1).wait()
        return mean.tolist(), mine.item(), kept.item()
    assert every(call) == [([1, 1], 2, 1), ([1, 1], 2, 6), ([1, 1], 2, 3)]


def test_different_calls_raise_everywhere(every):
    def call(group, rank):
        work = group.allreduce([torch.ones(2 + (rank == 1))])
        work.wait()
    found = every(call)
    assert len({str(error) for error in found}) == 1
    assert str(found[0]).startswith("Detected mismatch between collectives on ranks. Rank 0 is")


def test_a_collective_that_times_out_ends_the_group(every):
    def call(group, rank):
        if rank == 0:
            return "away"
        group.set_timeout(timedelta(milliseconds=50))
        texts = []
        for _ in range(2):
            with pytest.raises(RuntimeError) as raised:
                group.barrier().wait()
            texts.append(str(raised.value))
        return texts
    away, *others = every(call)
    assert away == "away"
    for first, second in others:
        assert "rank 0 has not come to barrier" in first or "Timed out" in first
        assert second.startswith("barrier: the process group has failed before")


def test_monitored_barriers(every):
    assert every(lambda group, rank: group.monitored_barrier()) == [None] * SIZE

    def missing(group, rank):
        if rank != 1:
            group.monitored_barrier(timedelta(milliseconds=100), wait_all_ranks=True)
    first, _, last = every(missing)
    assert str(first) == "Rank 1 failed to pass monitoredBarrier in 100 ms"
    assert "Rank 2 successfully reached monitoredBarrier, but received errors" in str(last)


def test_options_and_devices():
    options = dist.ProcessGroupGloo._Options()
    assert options._timeout == timedelta(minutes=30) and options.backend == "gloo"
    assert options._threads == 2 and options._devices == []
    device = dist.ProcessGroupGloo.create_device(hostname="127.0.0.1")
    assert isinstance(device, dist.ProcessGroupGloo.Device)
    group = dist.ProcessGroupGloo(dist.HashStore(), 0, 1, SECONDS)
    assert (group.rank(), group.size(), group.name()) == (0, 1, "gloo")
    x = torch.ones(2)
    assert group.allreduce([x]).wait() and x.tolist() == [1, 1]
