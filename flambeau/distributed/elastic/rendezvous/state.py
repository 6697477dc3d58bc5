"""The state of a rendezvous that nodes join and leave, and the steps that change it.

A step looks at the state and changes it, or says what it waits for. It knows nothing of where the
state is kept: `dynamic_rendezvous` runs it again when another node has been faster.
"""
from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from flambeau.distributed.elastic.rendezvous.api import (
    RendezvousClosedError,
    RendezvousGracefulExitError,
    RendezvousTimeoutError,
)


class RendezvousTimeout:
    """How long parts of a rendezvous may take.

    Args:
        join: until enough nodes have joined; 600 seconds by default.
        last_call: for which further nodes are waited when there are enough; 30.
        close: for closing; 30.
        heartbeat: for a sign of life; 5.
    """

    _DEFAULT_TIMEOUTS = {"join": timedelta(seconds=600), "last_call": timedelta(seconds=30),
                         "close": timedelta(seconds=30), "heartbeat": timedelta(seconds=5)}

    def __init__(self, join: timedelta | None = None, last_call: timedelta | None = None,
                 close: timedelta | None = None, heartbeat: timedelta | None = None):
        self._set_timeouts(join=join, last_call=last_call, close=close, heartbeat=heartbeat)

    def _set_timeouts(self, **timeouts: timedelta | None) -> None:
        for name, timeout in timeouts.items():
            timeout = self._DEFAULT_TIMEOUTS[name] if timeout is None else timeout
            if timeout <= timedelta():
                raise ValueError(f"The {name} timeout ({timeout}) must be positive.")
            setattr(self, "_" + name, timeout)

    @property
    def join(self) -> timedelta:
        """Until enough nodes have joined."""
        return self._join

    @property
    def last_call(self) -> timedelta:
        """For further nodes, when there are enough."""
        return self._last_call

    @property
    def close(self) -> timedelta:
        """For closing."""
        return self._close

    @property
    def heartbeat(self) -> timedelta:
        """For a sign of life."""
        return self._heartbeat

    _join: timedelta
    _last_call: timedelta
    _close: timedelta
    _heartbeat: timedelta


@dataclass(repr=False, eq=False, frozen=True)
class RendezvousSettings:
    """What all nodes of a run agree on."""

    run_id: str
    min_nodes: int
    max_nodes: int
    timeout: RendezvousTimeout
    keep_alive_interval: timedelta
    keep_alive_max_attempt: int


@dataclass(eq=True, order=True, frozen=True)
class _NodeDesc:
    """A node: its address, the process of its agent, and which rendezvous of that process."""

    addr: str
    pid: int
    local_id: int

    def __repr__(self) -> str:
        return f"{self.addr}_{self.pid}_{self.local_id}"


class _NodeDescGenerator:
    """Makes nodes of this process."""

    def __init__(self) -> None:
        self._lock, self._local_id = threading.Lock(), 0

    def generate(self, local_addr: str | None = None) -> _NodeDesc:
        """A new node."""
        with self._lock:
            local_id, self._local_id = self._local_id, self._local_id + 1
        return _NodeDesc(local_addr or socket.getfqdn(), os.getpid(), local_id)


@dataclass
class _RendezvousState:
    """Who takes part, who waits for the next round, who is over; and when each was last heard of.

    Times are seconds since 1970.
    """

    round: int = 0
    complete: bool = False
    deadline: float | None = None               # of the last call, in a round that has enough nodes
    closed: bool = False
    participants: dict[_NodeDesc, int] = field(default_factory=dict)
    wait_list: set[_NodeDesc] = field(default_factory=set)
    redundancy_list: set[_NodeDesc] = field(default_factory=set)
    last_heartbeats: dict[_NodeDesc, float] = field(default_factory=dict)

    def dump(self) -> bytes:
        """The state as JSON."""
        nodes = sorted({*self.participants, *self.wait_list, *self.redundancy_list})
        lists = {"wait": self.wait_list, "redundancy": self.redundancy_list}
        return json.dumps({
            "round": self.round, "complete": self.complete, "deadline": self.deadline,
            "closed": self.closed, "nodes": [
                [node.addr, node.pid, node.local_id, self.participants.get(node),
                 next((name for name, found in lists.items() if node in found), None),
                 self.last_heartbeats.get(node)] for node in nodes]}).encode()

    @staticmethod
    def load(data: bytes) -> _RendezvousState:
        """The state that `dump` wrote."""
        fields = json.loads(data)
        nodes = fields.pop("nodes")
        state = _RendezvousState(**fields)
        for addr, pid, local_id, rank, waits, heard in nodes:
            node = _NodeDesc(addr, pid, local_id)
            if rank is not None:
                state.participants[node] = rank
            if waits is not None:
                (state.wait_list if waits == "wait" else state.redundancy_list).add(node)
            if heard is not None:
                state.last_heartbeats[node] = heard
        return state

    # Changes --------------------------------------------------------------------------------

    def add(self, node: _NodeDesc, settings: RendezvousSettings) -> None:
        """Let a node take part in the round that is forming."""
        self.wait_list.discard(node)
        self.participants[node] = 0
        if len(self.participants) == settings.min_nodes:
            self.deadline = time.time() + settings.timeout.last_call.total_seconds()
        if len(self.participants) == settings.max_nodes:
            self.complete_round()

    def complete_round(self) -> None:
        """The nodes that take part are all: number them."""
        self.complete, self.deadline = True, None
        self.participants = {node: rank for rank, node in enumerate(sorted(self.participants))}

    def remove(self, node: _NodeDesc, settings: RendezvousSettings) -> None:
        """Let a node leave. When the last one leaves a round, the next begins."""
        self.wait_list.discard(node)
        self.redundancy_list.discard(node)
        self.last_heartbeats.pop(node, None)
        if self.participants.pop(node, None) is None:
            return
        if self.complete:
            if not self.participants:
                self.complete = False
                self.round += 1
        elif len(self.participants) < settings.min_nodes:
            self.deadline = None

    def remove_dead(self, settings: RendezvousSettings) -> None:
        """Let nodes leave that have not been heard of for too long."""
        oldest = time.time() - (settings.keep_alive_interval.total_seconds()
                                * settings.keep_alive_max_attempt)
        for node in [n for n, heard in self.last_heartbeats.items() if heard < oldest]:
            self.remove(node, settings)


# Steps --------------------------------------------------------------------------------------

# A step gives what to wait for ("" if it is done); `deadline` is when the caller gives up.
Step = Callable[[_RendezvousState, _NodeDesc, RendezvousSettings, float], str]
_ROLLBACK_SECONDS = 5       # to leave in order, after the deadline


def join(state: _RendezvousState, node: _NodeDesc, settings: RendezvousSettings, deadline: float
         ) -> str:
    """Take part in a round, and wait until it is complete."""
    if state.closed:
        if node in state.redundancy_list:
            raise RendezvousGracefulExitError(
                f"The node {node} was redundant, and the rendezvous is closed.")
        raise RendezvousClosedError
    if node in state.redundancy_list:
        return _wait_as_redundant(state, node, settings)
    if state.complete and node in state.participants:
        return ""
    now = time.monotonic()
    if now > deadline:
        if now > deadline + _ROLLBACK_SECONDS or node not in {*state.participants,
                                                              *state.wait_list}:
            raise RendezvousTimeoutError
        state.remove(node, settings)
        return "leaving"
    if state.complete:
        if len(state.participants) < settings.max_nodes:
            state.wait_list.add(node)       # the agents in the round see that, and start a new one
        else:
            state.redundancy_list.add(node)
        return "the next round"
    if node not in state.participants:
        state.add(node, settings)
    elif state.deadline is not None and len(state.participants) >= settings.min_nodes \
            and time.time() > state.deadline:
        state.complete_round()
    return "" if state.complete else "more nodes"


def _wait_as_redundant(state: _RendezvousState, node: _NodeDesc, settings: RendezvousSettings
                       ) -> str:
    """There are nodes enough: wait, without a deadline, until one has left."""
    if len(state.participants) < settings.max_nodes:
        state.redundancy_list.discard(node)
        if state.complete:
            state.wait_list.add(node)
        else:
            state.add(node, settings)
            return "" if state.complete else "more nodes"
    return "a place"


def leave(state: _RendezvousState, node: _NodeDesc, settings: RendezvousSettings, deadline: float
          ) -> str:
    """Take part no longer."""
    if node in state.participants:
        if time.monotonic() > deadline:
            raise RendezvousTimeoutError
        state.remove(node, settings)
    return ""


def close(state: _RendezvousState, node: _NodeDesc, settings: RendezvousSettings, deadline: float
          ) -> str:
    """End the rendezvous for good."""
    if not state.closed:
        if time.monotonic() > deadline:
            raise RendezvousTimeoutError
        state.closed = True
    return ""


def keep_alive(state: _RendezvousState, node: _NodeDesc, settings: RendezvousSettings,
               deadline: float) -> str:
    """Give a sign of life, where one is due."""
    if node in {*state.participants, *state.wait_list, *state.redundancy_list}:
        now = time.time()
        due = state.last_heartbeats.get(node, 0.0) + settings.keep_alive_interval.total_seconds()
        if now >= due:
            if time.monotonic() > deadline:
                raise RendezvousTimeoutError
            state.last_heartbeats[node] = now
    return ""
