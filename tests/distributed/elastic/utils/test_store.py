"""What agents tell each other."""
from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from flambeau.distributed import DistStoreError, HashStore
from flambeau.distributed.elastic.utils.store import barrier, get_all, store_timeout, synchronize


def test_everyone_gets_everything():
    store, found = HashStore(), [None] * 3

    def agent(rank):
        found[rank] = synchronize(store, b"%d" % rank, rank, 3, "names")
    threads = [threading.Thread(target=agent, args=(rank,)) for rank in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert found == [[b"0", b"1", b"2"]] * 3
    assert store.get("names/finished/num_members") == b"3"
    assert sorted(key for key in store.list_keys()) == [
        "names/finished/last_member", "names/finished/num_members", "names0", "names1", "names2"]


def test_reading_does_not_wait_for_others():
    store = HashStore()
    store.set("p0", "a"), store.set("p1", "b")
    assert get_all(store, 1, "p", 2) == [b"a", b"b"]
    assert not store.check(["p/finished/last_member"])


def test_the_timeout_comes_back():
    store = HashStore()
    before = store.timeout
    with store_timeout(store, 0.5):
        assert store.timeout == timedelta(seconds=0.5)
    assert store.timeout == before
    synchronize(store, b"", 0, 1, "k", timeout=0.5)
    assert store.timeout == before


def test_a_barrier_of_one():
    store = HashStore()
    barrier(store, 1, "b")
    assert store.get("b/last_member") == b"<val_ignored>"
    with pytest.raises(DistStoreError):
        barrier(store, 2, "c", 0.01)
    with pytest.raises(AssertionError, match="Tracing requires rank information"):
        barrier(store, 1, "b", rank_tracing_decoder=str)


def test_missing_ranks_are_named():
    store = HashStore()
    store.add("b/num_members", 1)
    store.set("b1/TRACE", "")
    with pytest.raises(DistStoreError, match=(
            r"Timed out waiting on barrier on rank 0, for key prefix: b \(world_size=4, "
            r"missing_ranks=\[(h2, h3|h3, h2)\], timeout=0.01\)")):
        barrier(store, 4, "b", 0.01, 0, "h{}".format, trace_timeout=0.01)
    with pytest.raises(DistStoreError, match=(
            r"on rank 1, .*missing_ranks=\[\[<check rank 0 \(h0\) for missing rank info>\]\], ")):
        barrier(store, 9, "b", 0.01, rank=1, rank_tracing_decoder="h{}".format)
    with pytest.raises(DistStoreError) as error:        # rank 0 has not told
        barrier(store, 9, "other", 0.01, rank=1, trace_timeout=0.01)
    assert "missing_ranks" not in str(error.value)


def test_many_missing_ranks():
    with pytest.raises(DistStoreError, match="missing_ranks=") as error:
        barrier(HashStore(), 40, "b", 0.01, rank=0, trace_timeout=0.01)
    found = str(error.value).partition("missing_ranks=[")[2].partition("]")[0]
    assert sorted(map(int, found.split(", "))) == list(range(1, 17))
