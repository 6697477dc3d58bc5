"""Writing events."""
from __future__ import annotations

import logging
import os

import pytest

from flambeau.distributed.elastic import events
from flambeau.distributed.elastic.events import handlers


class Keep(logging.Handler):
    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


@pytest.fixture
def kept(monkeypatch):
    """What is written to the destinations `mine` and `dynamic_rendezvous`."""
    handler = Keep()
    for name in ("mine", "dynamic_rendezvous"):
        monkeypatch.setitem(handlers._log_handlers, name, handler)
        monkeypatch.delitem(events._events_loggers, name, raising=False)
    yield handler.lines
    for name in ("mine", "dynamic_rendezvous"):
        logging.getLogger(f"torchelastic-events-{name}").removeHandler(handler)
        events._events_loggers.pop(name, None)


def test_events_are_written_as_json(kept):
    event = events.Event("started", events.EventSource.AGENT, metadata={"a": 1})
    events.record(event, "mine")
    events.record(event)                    # to nowhere
    assert [events.Event.deserialize(line) for line in kept] == [event]


def test_rendezvous(kept):
    events.construct_and_record_rdzv_event("run", "words", events.NodeState.INIT, rank=2)
    try:
        raise ValueError("bad")
    except ValueError:
        events.construct_and_record_rdzv_event("run", "words", events.NodeState.FAILED, "name",
                                               "host", 7)
    first, second = map(events.RdzvEvent.deserialize, kept)
    assert first.name == "test_events.py:test_rendezvous" and first.error_trace == ""
    assert (first.pid, first.rank, first.local_id) == (os.getpid(), 2, None)
    assert (second.name, second.hostname, second.pid) == ("test_events.py:name", "host", 7)
    assert "ValueError: bad" in second.error_trace


def test_nobody_listens():
    events.construct_and_record_rdzv_event("run", "words", events.NodeState.INIT)
    assert "dynamic_rendezvous" not in events._events_loggers


def test_destinations_that_are_none():
    with pytest.raises(KeyError):
        events.record(events.Event("x", events.EventSource.AGENT), "nowhere")
