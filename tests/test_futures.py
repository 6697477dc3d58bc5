"""torch.futures."""
from __future__ import annotations

import threading

import pytest

from flambeau.futures import Future, collect_all, wait_all


def test_another_thread_sets_the_value():
    future = Future()
    threading.Timer(0.01, future.set_result, (3,)).start()
    assert future.wait() == 3 and future.done() and future.value() == 3


def test_a_value_is_set_once():
    future = Future()
    future.set_result(3)
    with pytest.raises(RuntimeError, match="Attempting to mark a completed Future"):
        future.set_result(4)


def test_then_chains():
    future = Future()
    last = future.then(lambda f: f.value() + 1).then(lambda f: f.value() * 2)
    assert not last.done()
    future.set_result(1)
    assert last.wait() == 4


def test_long_chains():
    first = last = Future()
    for _ in range(5000):
        last = last.then(lambda f: f.value() + 1)
    together = last
    for _ in range(2000):
        together = collect_all([together]).then(lambda f: f.value()[0].value() + 1)
    first.set_result(0)
    assert last.value() == 5000 and together.value() == 7000


def test_callbacks_run_depth_first():
    future, other, seen = Future(), Future(), []

    def set_other(f):
        other.set_result(1)
        seen.append("other is set")                 # what waits for `other` has been run
    future.then(lambda f: seen.append("then")).add_done_callback(lambda f: seen.append("after"))
    other.add_done_callback(lambda f: seen.append("of other"))
    future.add_done_callback(set_other)
    future.add_done_callback(lambda f: seen.append("last"))
    future.set_result(None)
    assert seen == ["then", "after", "of other", "other is set", "last"]


def test_errors():
    future = Future()
    with pytest.raises(AssertionError, match="not an Exception"):
        future.set_exception(3)
    with pytest.raises(RuntimeError, match="completed"):
        future.value()
    future.set_exception(ValueError("bad"))
    for call in (future.wait, future.value, lambda: wait_all([future])):
        with pytest.raises(ValueError, match="bad"):
            call()
    with pytest.raises(RuntimeError, match="running the callback: ZeroDivisionError"):
        future.then(lambda f: 1 / 0).wait()


def test_callbacks_run_in_order():
    future, seen = Future(), []
    for i in range(3):
        future.add_done_callback(lambda f, i=i: seen.append((i, f.value())))
    future.set_result("x")
    future.add_done_callback(lambda f: seen.append(3))
    assert seen == [(0, "x"), (1, "x"), (2, "x"), 3]


def test_collect_all():
    futures = [Future() for _ in range(3)]
    together = collect_all(futures)
    for i, future in enumerate(reversed(futures)):
        assert not together.done()
        future.set_result(i)
    assert [f.value() for f in together.wait()] == [2, 1, 0]
    assert collect_all([]).wait() == [] and wait_all(futures) == [2, 1, 0]


def test_devices():
    with pytest.raises(ValueError, match="Expected devices to have indices, got cpu"):
        Future(devices=["cpu"])


def test_only_sequences_of_futures_are_collected():
    for wrong in (3, [1], None):
        with pytest.raises(TypeError, match=r"^_collect_all\(\): incompatible function arguments"):
            collect_all(wrong)
