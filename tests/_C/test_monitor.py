"""Counters over windows of time, and the events that handlers get."""
import datetime
import time
from datetime import timedelta

import pytest

import flambeau as torch
from flambeau import monitor
from flambeau.monitor import Aggregation, Event, Stat

ALL = list(Aggregation)


@pytest.fixture
def events():
    found = []
    handle = monitor.register_event_handler(lambda event: found.append(event))
    yield found
    monitor.unregister_event_handler(handle)


def test_a_window_that_is_full_is_logged(events):
    stat = Stat("loss", ALL, timedelta(seconds=1000), 3)
    for value in (1, 2, 6, 7):
        stat.add(value)
    assert stat.count == 0                  # of what comes after, until the next window
    assert events[0].name == monitor.STAT_EVENT == "torch.monitor.Stat"
    assert events[0].data == {"loss.mean": 3, "loss.count": 3, "loss.sum": 9, "loss.max": 6,
                              "loss.min": 1}
    assert stat.get() == {Aggregation.MEAN: 3, Aggregation.COUNT: 3, Aggregation.SUM: 9,
                          Aggregation.MAX: 6, Aggregation.MIN: 1}
    assert len(events) == 1


def test_a_window_that_is_over_is_logged(events):
    stat = Stat("a", [Aggregation.SUM], timedelta(milliseconds=1))
    stat.add(3)
    time.sleep(0.003)
    stat.add(4)
    assert [event.data for event in events] == [{"a.sum": 3}]
    assert stat.get() in ({Aggregation.SUM: 3}, {Aggregation.SUM: 4})


def test_what_is_left_is_logged_at_the_end(events):
    stat = Stat("a", [Aggregation.COUNT], timedelta(seconds=1000))
    assert stat.name == "a" and stat.get() == {Aggregation.COUNT: 0}
    del stat
    assert not events
    stat = Stat("b", [Aggregation.COUNT], timedelta(seconds=1000))
    stat.add(1)
    del stat
    assert [event.data for event in events] == [{"b.count": 1}]


def test_events_go_to_the_handlers_that_are_registered(events):
    event = Event("n", datetime.datetime(2020, 1, 1), {"a": "b", "c": 1, "d": True})
    monitor.log_event(event)
    assert events == [event] and event.data == {"a": "b", "c": 1, "d": 1.0}
    event.name, event.data = "z", {"q": 1}
    assert (event.name, event.data) == ("z", {"q": 1})
    handle = monitor.register_event_handler(events.clear)
    monitor.unregister_event_handler(handle)
    monitor.log_event(event)
    assert len(events) == 2


def test_values_are_written_to_a_summary():
    written = []

    class Writer:
        def add_scalar(self, *args, **kwargs):
            written.append((args, kwargs))
    handler = monitor.TensorboardEventHandler(Writer())
    handler(Event("n", datetime.datetime(2020, 1, 1), {"a": 1}))
    assert written == [(("a", 1), {"walltime": datetime.datetime(2020, 1, 1).timestamp()})]


def test_wrong_arguments():
    with pytest.raises(TypeError, match="incompatible constructor arguments"):
        Stat("x", 3, timedelta(seconds=1))
    with pytest.raises(TypeError, match="incompatible constructor arguments"):
        Event("x", 1, {})
    with pytest.raises(TypeError, match="incompatible constructor arguments"):
        Event("x", datetime.datetime.now(), {"a": []})
    with pytest.raises(TypeError, match="incompatible function arguments"):
        monitor.log_event(3)
    assert repr(Aggregation.SUM) == "<Aggregation.SUM: 4>" and int(monitor.MIN) == 6
    with torch._C._monitor._WaitCounter("x").guard():
        pass
