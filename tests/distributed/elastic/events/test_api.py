"""Kinds of events."""
from __future__ import annotations

import json

import pytest

from flambeau.distributed.elastic.events import Event, EventSource, NodeState, RdzvEvent

EVENT = Event("started", EventSource.WORKER, 3, {"workers": 2, "x": None, "y": 0.5})
RDZV = RdzvEvent("join", "run", "all is well", "host", 7, NodeState.RUNNING, rank=1)


@pytest.mark.parametrize("event", [EVENT, RDZV], ids=["event", "rendezvous"])
def test_round_trip(event):
    cls = type(event)
    assert cls.deserialize(event.serialize()) == event and str(event) == event.serialize()
    assert cls.deserialize(event) is event


def test_as_json():
    assert json.loads(EVENT.serialize()) == {
        "name": "started", "source": "WORKER", "timestamp": 3,
        "metadata": {"workers": 2, "x": None, "y": 0.5}}
    assert json.loads(RDZV.serialize()) == {
        "name": "join", "run_id": "run", "message": "all is well", "hostname": "host", "pid": 7,
        "node_state": "RUNNING", "master_endpoint": "", "rank": 1, "local_id": None,
        "error_trace": ""}


def test_defaults():
    event = Event("x", EventSource.AGENT)
    assert (event.timestamp, event.metadata) == (0, {})
    assert event.metadata is not Event("x", EventSource.AGENT).metadata


def test_sources_and_states_are_words():
    assert EventSource.AGENT == "AGENT" and str(EventSource.AGENT) == "EventSource.AGENT"
    assert [state.value for state in NodeState] == ["INIT", "RUNNING", "SUCCEEDED", "FAILED"]
    with pytest.raises(KeyError):
        Event.deserialize(EVENT.serialize().replace("WORKER", "NOBODY"))
