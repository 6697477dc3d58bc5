"""Kinds of events.

>>> event = Event("started", EventSource.AGENT, metadata={"workers": 2})
>>> event.serialize()
'{"name": "started", "source": "AGENT", "timestamp": 0, "metadata": {"workers": 2}}'
>>> Event.deserialize(event.serialize()) == event
True
"""
from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Self

from flambeau._support.own_methods import define_in_subclasses

__all__ = ["Event", "EventSource", "NodeState", "RdzvEvent"]

EventMetadataValue = str | int | float | bool | None


class EventSource(str, Enum):        # noqa: UP042 - prints as an Enum does
    """Who tells of an event."""

    AGENT = "AGENT"
    WORKER = "WORKER"


class NodeState(str, Enum):        # noqa: UP042 - prints as an Enum does
    """How it stands with a node in a rendezvous."""

    INIT = "INIT"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"


@define_in_subclasses()
class _WrittenAsJson:
    """What writes itself as JSON, and kinds by their names."""

    def __str__(self) -> str:
        return self.serialize()

    @classmethod
    def deserialize(cls, data: str | Self) -> Self:
        """The event that `serialize` wrote."""
        if isinstance(data, cls):
            return data
        written = json.loads(str(data))
        for name, kind in (("source", EventSource), ("node_state", NodeState)):
            if name in written:
                written[name] = kind[written[name]]
        return cls(**written)

    def serialize(self) -> str:
        """The event as JSON."""
        return json.dumps(asdict(self))         # type: ignore[call-overload]


@dataclass
class Event(_WrittenAsJson):
    """Something that has happened to an agent or a worker."""

    name: str
    source: EventSource
    timestamp: int = 0
    metadata: dict[str, EventMetadataValue] = field(default_factory=dict)


@dataclass
class RdzvEvent(_WrittenAsJson):
    """Something that has happened in a rendezvous."""

    name: str
    run_id: str
    message: str
    hostname: str
    pid: int
    node_state: NodeState
    master_endpoint: str = ""
    rank: int | None = None
    local_id: int | None = None
    error_trace: str = ""
