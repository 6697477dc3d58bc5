"""Counts of calls."""
import pytest

from flambeau.utils import _stats


@pytest.fixture(autouse=True)
def empty(monkeypatch):
    monkeypatch.setattr(_stats, "simple_call_counter", type(_stats.simple_call_counter)())


def test_calls_are_counted_by_qualified_name():
    class Holder:
        @_stats.count
        def method(self, x):
            return x + 1

    assert [Holder().method(i) for i in range(3)] == [1, 2, 3]
    name, = _stats.simple_call_counter
    assert name.endswith("Holder.method") and _stats.simple_call_counter[name] == 3


def test_labels():
    for label in ("b", "a", "b"):
        _stats.count_label(label)
    assert list(_stats.simple_call_counter.items()) == [("b", 2), ("a", 1)]
