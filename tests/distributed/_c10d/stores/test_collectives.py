"""Collectives of small values through a store."""
from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from flambeau import distributed as dist
from flambeau._C import _distributed_c10d as c
from flambeau.distributed import distributed_c10d as c10d


def store_collectives(rank):
    store = c10d._get_default_store()
    shared = c._StoreCollectives(store, rank, 2)
    shared.barrier("first")
    assert shared.all_sum("sum", rank + 1) == 3
    assert shared.all_gather("all", str(rank)) == [b"0", b"1"]
    assert (shared.scatter_send("part", ["a", "b"]) if rank == 0
            else shared.scatter_recv("part")) == [b"a", b"b"][rank]
    with pytest.raises(RuntimeError, match="Key first has already been used"):
        shared.barrier("first")
    store.barrier("again", 2)


def test_collectives_through_a_store(processes):
    processes(store_collectives)


def every(size, call):
    """What `call(collectives, rank)` gives in each of several threads, which share a store."""
    store, found = dist.HashStore(), [None] * size

    def run(rank):
        found[rank] = call(c._StoreCollectives(store, rank, size), rank)
    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    return found


def test_values_of_all():
    assert every(3, lambda s, rank: s.all_sum("n", rank + 1)) == [6, 6, 6]
    assert every(3, lambda s, rank: s.all_gather("v", f"r{rank}")) == [[b"r0", b"r1", b"r2"]] * 3


def test_values_of_one():
    assert every(2, lambda s, rank: s.broadcast_send("k", "v") if rank == 0
                 else s.broadcast_recv("k")) == [None, b"v"]
    assert every(2, lambda s, rank: s.gather_recv("k", "a") if rank == 0
                 else s.gather_send("k", "b")) == [[b"a", b"b"], None]
    assert every(2, lambda s, rank: s.scatter_send("k", ["a", "b"]) if rank == 0
                 else s.scatter_recv("k")) == [b"a", b"b"]


def test_keys_are_used_once():
    shared = c._StoreCollectives(dist.HashStore(), 0, 1)
    shared.barrier("k")
    for call in (lambda: shared.barrier("k"), lambda: shared.all_sum("k", 1),
                 lambda: shared.broadcast_send("k", "v"), lambda: shared.scatter_send("k", ["v"])):
        with pytest.raises(RuntimeError, match="Key k has already been used"):
            call()


def test_who_does_not_come():
    alone = c._StoreCollectives(dist.HashStore(), 0, 2)
    short = timedelta(milliseconds=20)
    for call in (lambda: alone.barrier("a", short), lambda: alone.all_sum("b", 1, short),
                 lambda: alone.broadcast_recv("c", short)):
        with pytest.raises(RuntimeError, match=r"(?i)wait timeout"):
            call()
    assert alone.barrier("d", block=False) is None
