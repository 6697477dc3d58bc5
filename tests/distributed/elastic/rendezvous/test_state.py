"""Steps that nodes take, and the state that they change."""
from __future__ import annotations

import time
from datetime import timedelta

import pytest

from flambeau.distributed.elastic.rendezvous import (
    RendezvousClosedError,
    RendezvousGracefulExitError,
    RendezvousTimeoutError,
)
from flambeau.distributed.elastic.rendezvous.state import (
    RendezvousSettings,
    RendezvousTimeout,
    _NodeDesc,
    _NodeDescGenerator,
    _RendezvousState,
    close,
    join,
    keep_alive,
    leave,
)

A, B, C = (_NodeDesc(name, 1, 0) for name in "abc")
LATER, BEFORE = float("inf"), 0.0


def settings(low=1, high=2, **timeouts):
    return RendezvousSettings("run", low, high, RendezvousTimeout(**timeouts),
                              timedelta(seconds=5), 3)


def test_nodes_are_told_apart():
    generator = _NodeDescGenerator()
    first, second = generator.generate("here"), generator.generate("here")
    assert first < second and repr(first) == f"here_{first.pid}_0" and second.local_id == 1
    assert generator.generate().addr


def test_a_state_is_kept():
    state = _RendezvousState(3, True, 1.5, False, {A: 1, B: 0}, {C}, set(), {A: 2.5})
    assert _RendezvousState.load(state.dump()) == state
    state = _RendezvousState(closed=True, redundancy_list={B})
    assert _RendezvousState.load(state.dump()) == state


def test_a_round_of_all():
    state, agreed = _RendezvousState(), settings(2, 2)
    assert join(state, B, agreed, LATER) == "more nodes" and state.deadline is None
    assert join(state, A, agreed, LATER) == "" and state.complete
    assert state.participants == {A: 0, B: 1}               # in the order of their names
    assert join(state, B, agreed, LATER) == ""
    assert join(state, C, agreed, LATER) == "the next round" and state.redundancy_list == {C}
    assert join(state, C, agreed, BEFORE) == "a place"      # for which there is no limit
    leave(state, A, agreed, LATER)
    assert join(state, C, agreed, LATER) == "a place" and state.wait_list == {C}
    leave(state, B, agreed, LATER)
    assert (state.round, state.complete, state.participants) == (1, False, {})


def test_the_last_call():
    state, agreed = _RendezvousState(), settings(1, 2, last_call=timedelta(seconds=60))
    assert join(state, A, agreed, LATER) == "more nodes"
    assert state.deadline == pytest.approx(time.time() + 60, abs=5)
    state.deadline = time.time() - 1
    assert join(state, A, agreed, LATER) == "" and state.complete
    assert join(state, B, agreed, LATER) == "the next round" and state.wait_list == {B}


def test_too_few_are_left():
    state, agreed = _RendezvousState(), settings(2, 3)
    join(state, A, agreed, LATER), join(state, B, agreed, LATER)
    assert state.deadline is not None
    leave(state, B, agreed, LATER)
    assert state.deadline is None and state.participants == {A: 0}


def test_out_of_time():
    state, agreed = _RendezvousState(), settings(2, 2)
    with pytest.raises(RendezvousTimeoutError):
        join(state, A, agreed, BEFORE)
    join(state, A, agreed, LATER)
    assert join(state, A, agreed, time.monotonic() - 0.1) == "leaving" and not state.participants
    join(state, A, agreed, LATER)
    for step in (leave, close, keep_alive):
        with pytest.raises(RendezvousTimeoutError):
            step(state, A, agreed, BEFORE)


def test_closed():
    state, agreed = _RendezvousState(redundancy_list={B}), settings()
    assert close(state, A, agreed, LATER) == close(state, A, agreed, BEFORE) == ""
    with pytest.raises(RendezvousClosedError):
        join(state, A, agreed, LATER)
    with pytest.raises(RendezvousGracefulExitError, match="The node b_1_0 was redundant"):
        join(state, B, agreed, LATER)


def test_signs_of_life():
    state, agreed = _RendezvousState(), settings()
    keep_alive(state, A, agreed, LATER)
    assert not state.last_heartbeats                        # it does not take part
    join(state, A, agreed, LATER), join(state, B, agreed, LATER)
    keep_alive(state, A, agreed, LATER)
    heard = state.last_heartbeats[A]
    keep_alive(state, A, agreed, LATER)
    assert state.last_heartbeats == {A: heard}
    state.last_heartbeats = {A: heard - 14, B: heard - 60}
    state.remove_dead(agreed)
    assert list(state.participants) == [A] and list(state.last_heartbeats) == [A]


def test_timeouts():
    found = RendezvousTimeout(close=timedelta(seconds=7))
    assert [t.total_seconds() for t in (found.join, found.last_call, found.close,
                                        found.heartbeat)] == [600, 30, 7, 5]
    with pytest.raises(ValueError, match=r"The join timeout \(0:00:00\) must be positive"):
        RendezvousTimeout(timedelta(0))
    with pytest.raises(ValueError, match=r"The heartbeat timeout \(-1 day, 23:59:59\) must be"):
        RendezvousTimeout(heartbeat=timedelta(seconds=-1))
