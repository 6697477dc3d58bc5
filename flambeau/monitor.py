"""Events and counters of a program that runs: log them, and let handlers collect them.

>>> from datetime import timedelta
>>> stat = torch.monitor.Stat("images", [torch.monitor.Aggregation.COUNT], timedelta(seconds=60))
>>> stat.add(1)
>>> stat.count
1
"""
from __future__ import annotations

from typing import Any

from flambeau._C._monitor import (
    Aggregation,
    Event,
    EventHandlerHandle,
    Stat,
    _WaitCounter,  # noqa: F401
    _WaitCounterTracker,  # noqa: F401
    data_value_t,
    log_event,
    register_event_handler,
    unregister_event_handler,
)

STAT_EVENT = "torch.monitor.Stat"
VALUE, MEAN, COUNT, SUM, MAX, MIN = Aggregation


class TensorboardEventHandler:
    """An event handler that writes the values of all events to a `SummaryWriter`.

    >>> from datetime import datetime
    >>> class Writer:
    ...     def add_scalar(self, name, value, walltime):
    ...         print(name, value)
    >>> handle = torch.monitor.register_event_handler(
    ...     torch.monitor.TensorboardEventHandler(Writer()))
    >>> torch.monitor.log_event(torch.monitor.Event("epoch", datetime.now(), {"loss": 0.5}))
    loss 0.5
    >>> torch.monitor.unregister_event_handler(handle)
    """

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def __call__(self, event: Event) -> None:
        for name, value in event.data.items():
            self._writer.add_scalar(name, value, walltime=event.timestamp.timestamp())


__all__ = ["COUNT", "MAX", "MEAN", "MIN", "STAT_EVENT", "SUM", "VALUE", "Aggregation", "Event",
           "EventHandlerHandle", "Stat", "TensorboardEventHandler", "data_value_t", "log_event",
           "register_event_handler", "unregister_event_handler"]
