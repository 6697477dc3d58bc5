"""Stores: every kind against the same expectations, their timeouts, and several threads."""
from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from flambeau import distributed as dist

SHORT = timedelta(milliseconds=30)


@pytest.fixture(params=["hash", "file", "tcp", "prefix"])
def store(request, tmp_path):
    if request.param == "file":
        return dist.FileStore(str(tmp_path / "store"), 1)
    if request.param == "tcp":
        return dist.TCPStore("127.0.0.1", 0, 1, True)
    if request.param == "prefix":
        return dist.PrefixStore("p", dist.HashStore())
    return dist.HashStore()


def test_entries(store):
    empty = store.num_keys()
    store.set("a", "b")
    assert store.get("a") == b"b" and store.num_keys() == empty + 1
    assert store.delete_key("a") and not store.delete_key("a")
    assert store.add("n", 3) == 3 and store.add("n", 4) == 7 and store.get("n") == b"7"
    assert store.check(["n"]) and not store.check(["n", "m"])
    store.append("n", "1")
    assert store.get("n") == b"71"
    store.multi_set(["p", "q"], ["1", b"\x00\xff"])
    assert store.multi_get(["p", "q"]) == [b"1", b"\x00\xff"]
    assert sorted(store.list_keys()) == ["n", "p", "q"]
    with pytest.raises(TypeError, match="incompatible function arguments"):
        store.set("q", 3)


def test_compare_set(store):
    assert store.compare_set("k", "x", "y") == b"x" and not store.check(["k"])
    assert store.compare_set("k", "", "y") == b"y"
    assert store.compare_set("k", "y", "z") == b"z"
    assert store.compare_set("k", "q", "r") == b"z"


def test_timeouts(store):
    assert store.timeout == timedelta(seconds=300)
    store.set_timeout(SHORT)
    for call in (lambda: store.get("none"), lambda: store.wait(["none"]),
                 lambda: store.wait(["none"], SHORT)):
        with pytest.raises(RuntimeError, match=r"(?i)^(wait timeout|Timeout waiting for key)"):
            call()


def test_a_value_from_another_thread(store):
    threading.Timer(0.02, store.set, ("late", "value")).start()
    assert store.get("late") == b"value"


def test_counters_from_many_threads(store):
    threads = [threading.Thread(target=lambda: [store.add("n", 1) for _ in range(10)])
               for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.get("n") == b"40"


def test_queues_barriers_and_stores_of_users():
    server = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    for store in (dist.HashStore(), server, dist.PrefixStore("p", dist.HashStore())):
        store.set_timeout(timedelta(milliseconds=50))
        store.queue_push("q", "a"), store.queue_push("q", b"b")
        assert store.queue_len("q") == 2 and store.queue_pop("q") == b"a"
        assert store.queue_pop("q", block=False) == b"b" and store.queue_len("q") == 0
        with pytest.raises(dist.QueueEmptyError, match="queue is empty"):
            store.queue_pop("q", block=False)
        with pytest.raises(dist.DistStoreError, match=r"(?i)wait timeout"):
            store.queue_pop("q")
        store.barrier("all", 1)
        assert store.clone().check(["all/last_member"])

    class Own(dist.Store):
        def __init__(self):
            self.values = {}

        def set(self, key, value):
            self.values[key] = value

        def get(self, key):
            return self.values[key]
    own = Own()
    dist.PrefixStore("a", dist.PrefixStore("b", own)).set("key", "value")
    assert own.values == {"b/a/key": b"value"}
    with pytest.raises(NotImplementedError, match=r"Own\.add"):
        own.add("n", 1)


def test_calls_that_no_parameter_takes():
    store = dist.HashStore()
    for call in (lambda: store.set("a"), lambda: store.get(1), lambda: store.add("n", 1.5),
                 lambda: store.wait("a"), lambda: store.check([1]), lambda: store.set(key="a"),
                 lambda: dist.PrefixStore("p", "store"), lambda: dist.FileStore(1)):
        with pytest.raises(TypeError, match=r"\(\): incompatible (function|constructor) arguments"):
            call()
    with pytest.raises(AttributeError, match=r"'torch._C._distributed_c10d.HashStore' object has"):
        store.put("a", "b")
