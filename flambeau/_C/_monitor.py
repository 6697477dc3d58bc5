"""Counters over windows of time, and the events that they and programs log: see `torch.monitor`."""
from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Sequence
from enum import Enum
from threading import RLock
from typing import Any


class Aggregation(Enum):
    """What a `Stat` says of the values of a window."""

    VALUE = 0
    MEAN = 2
    COUNT = 3
    SUM = 4
    MAX = 5
    MIN = 6

    def __repr__(self) -> str:
        return f"<{self}: {self.value}>"

    def __int__(self) -> int:
        return self.value

    __index__ = __int__


class data_value_t:
    """The type of an event's values: numbers, bools and strings."""

    def __init__(self) -> None:
        raise TypeError("torch._C._monitor.data_value_t: No constructor defined!")


class Event:
    """Something that happened: a name, a time, and values by their names.

    Events of one kind have one name, by which handlers know what to do with them.
    """

    __slots__ = ("_data", "_name", "_timestamp")

    def __init__(self, name: str, timestamp: datetime.datetime, data: dict[str, Any]) -> None:
        self.name, self.timestamp, self.data = name, timestamp, data

    @property
    def name(self) -> str:
        """What kind of event it is."""
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        self._name = _of_type("name", str, name)

    @property
    def timestamp(self) -> datetime.datetime:
        """When it happened."""
        return self._timestamp

    @timestamp.setter
    def timestamp(self, timestamp: datetime.datetime) -> None:
        self._timestamp = _of_type("timestamp", datetime.datetime, timestamp)

    @property
    def data(self) -> dict[str, Any]:
        """What is to be known of it."""
        return self._data

    @data.setter
    def data(self, data: dict[str, Any]) -> None:
        self._data = _values(_of_type("data", dict, data))


def _of_type(name: str, kind: type, value: Any) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"__init__(): incompatible constructor arguments: '{name}' of an event is "
                        f"a {kind.__name__}, not {value!r}")
    return value


def _values(data: dict[str, Any]) -> dict[str, Any]:
    """The values as C++ keeps them: a truth is a number there."""
    for key, value in data.items():
        if not isinstance(key, str) or not isinstance(value, (str, int, float)):
            raise TypeError("__init__(): incompatible constructor arguments: the data of an event "
                            f"are numbers and strings by names, not {value!r} by {key!r}")
    return {k: float(v) if isinstance(v, bool) else v for k, v in data.items()}


class EventHandlerHandle:
    """What `register_event_handler` gives, and `unregister_event_handler` takes."""

    def __init__(self) -> None:
        raise TypeError("torch._C._monitor.EventHandlerHandle: No constructor defined!")


_handlers: dict[EventHandlerHandle, Callable[[Event], None]] = {}


def register_event_handler(callback: Callable[[Event], None]) -> EventHandlerHandle:
    """Let `callback` be called with every event that is logged from now on.

    >>> from datetime import datetime
    >>> handle = torch.monitor.register_event_handler(lambda event: print(event.data))
    >>> torch.monitor.log_event(torch.monitor.Event("loss", datetime.now(), {"value": 0.5}))
    {'value': 0.5}
    >>> torch.monitor.unregister_event_handler(handle)
    """
    handle = object.__new__(EventHandlerHandle)
    _handlers[handle] = callback
    return handle


def unregister_event_handler(handler: EventHandlerHandle) -> None:
    """Let the callback that was registered with this handle be called no more."""
    _handlers.pop(handler, None)


def log_event(event: Event) -> None:
    """Give an event to all handlers that are registered."""
    if not isinstance(event, Event):
        raise TypeError("log_event(): incompatible function arguments. The following argument "
                        "types are supported:\n    1. (event: torch._C._monitor.Event) -> None\n\n"
                        f"Invoked with: {event!r}")
    for handler in tuple(_handlers.values()):
        handler(event)


_OF_VALUES: dict[Aggregation, Callable[[list[float]], float]] = {
    Aggregation.MEAN: lambda values: sum(values) / len(values) if values else 0.0,
    Aggregation.COUNT: lambda values: float(len(values)),
    Aggregation.SUM: lambda values: float(sum(values)),
    Aggregation.MAX: lambda values: max(values, default=0.0),
    Aggregation.MIN: lambda values: min(values, default=0.0),
}


class Stat:
    """Numbers that are added over a window of time, and what they come to.

    When a window is over, or has `max_samples` values, an event `torch.monitor.Stat` with the
    `aggregations` of its values is logged, and `get` gives them.

    >>> from datetime import timedelta
    >>> stat = torch.monitor.Stat("loss", [torch.monitor.Aggregation.SUM], timedelta(hours=1), 2)
    >>> stat.add(1)
    >>> stat.add(2)
    >>> stat.get()
    {<Aggregation.SUM: 4>: 3.0}
    """

    def __init__(self, name: str, aggregations: Sequence[Aggregation],
                 window_size: datetime.timedelta, max_samples: int = 2**63 - 1) -> None:
        if not (isinstance(name, str) and isinstance(aggregations, Sequence)
                and isinstance(window_size, datetime.timedelta)
                and all(isinstance(a, Aggregation) for a in aggregations)):
            raise TypeError(
                "__init__(): incompatible constructor arguments. The following argument types are "
                "supported:\n    1. torch._C._monitor.Stat(name: str, aggregations: "
                "collections.abc.Sequence[torch._C._monitor.Aggregation], window_size: "
                "datetime.timedelta, max_samples: typing.SupportsInt | typing.SupportsIndex = "
                f"9223372036854775807)\n\nInvoked with: {name!r}, {aggregations!r}, "
                f"{window_size!r}")
        self._name, self._max_samples = name, int(max_samples)
        self._aggregations = [a for a in _OF_VALUES if a in aggregations]
        self._length = window_size.total_seconds()
        self._lock = RLock()
        self._values: list[float] = []
        self._last = self._of([])
        self._window: int | None = None
        self._logged: int | None = None

    @property
    def name(self) -> str:
        """The name, with which those of the values of an event begin."""
        return self._name

    @property
    def count(self) -> int:
        """How many values were added in this window."""
        return len(self._values)

    def add(self, v: float) -> None:
        """Count a value in, after the window before has been logged."""
        value = float(v)
        with self._lock:
            self._turn()
            if self._logged is not None and self._logged == self._window:
                return                          # it had as many values as it may have
            self._values.append(value)
            if len(self._values) >= self._max_samples:
                self._log()
                self._logged = self._window

    def get(self) -> dict[Aggregation, float]:
        """What the values of the window before this one come to."""
        with self._lock:
            self._turn()
            return dict(self._last)

    def _turn(self) -> None:
        now = int(time.monotonic() // self._length) if self._length > 0 else 0
        if self._window is not None and now != self._window:
            self._log()
        self._window = now

    def _of(self, values: list[float]) -> dict[Aggregation, float]:
        return {a: _OF_VALUES[a](values) for a in self._aggregations}

    def _log(self) -> None:
        self._last = self._of(self._values)
        if not self._values:
            return
        self._values = []
        log_event(Event("torch.monitor.Stat", datetime.datetime.now(), {
            f"{self._name}.{a.name.lower()}": value for a, value in self._last.items()}))

    def __del__(self) -> None:
        if getattr(self, "_values", None):
            self._log()


class _WaitCounterTracker:
    """The time of a block, which nothing collects here."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


class _WaitCounter:
    """A counter of waiting, by its name."""

    def __init__(self, key: str) -> None:
        self._key = key

    def guard(self) -> _WaitCounterTracker:
        """A context whose time counts."""
        return _WaitCounterTracker()
