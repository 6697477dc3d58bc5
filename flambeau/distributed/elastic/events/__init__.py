"""What happens to agents and workers, written to a log that the program chooses.

>>> record(Event("started", EventSource.AGENT), "null")
"""
from __future__ import annotations

import inspect
import logging
import os
import socket
import traceback

from flambeau.distributed.elastic.events.api import *
from flambeau.distributed.elastic.events.api import EventMetadataValue
from flambeau.distributed.elastic.events.handlers import get_logging_handler

_events_loggers: dict[str, logging.Logger] = {}


def _get_or_create_logger(destination: str = "null") -> logging.Logger:
    if destination not in _events_loggers:
        logger = logging.getLogger(f"torchelastic-events-{destination}")
        logger.setLevel(os.environ.get("LOGLEVEL", "INFO"))
        logger.propagate = False
        logger.addHandler(get_logging_handler(destination))
        _events_loggers[destination] = logger
    return _events_loggers[destination]


def record(event: Event, destination: str = "null") -> None:
    """Write an event to a log: "console", "null" or one that was added to `handlers`."""
    _get_or_create_logger(destination).info(event.serialize())


def record_rdzv_event(event: RdzvEvent) -> None:
    """Write an event of a rendezvous."""
    _get_or_create_logger("dynamic_rendezvous").info(event.serialize())


def construct_and_record_rdzv_event(
        run_id: str, message: str, node_state: NodeState, name: str = "", hostname: str = "",
        pid: int | None = None, master_endpoint: str = "", local_id: int | None = None,
        rank: int | None = None) -> None:
    """Make an event of a rendezvous and write it, if anyone listens: its name begins with
    the caller's file; the rest of it, host and process are the caller's by default."""
    if isinstance(get_logging_handler("dynamic_rendezvous"), logging.NullHandler):
        return
    caller = inspect.stack()[1]
    name = f"{os.path.basename(caller.filename)}:{name or caller.function}"
    record_rdzv_event(RdzvEvent(
        name=name, run_id=run_id, message=message, hostname=hostname or socket.getfqdn(),
        pid=pid or os.getpid(), node_state=node_state, master_endpoint=master_endpoint, rank=rank,
        local_id=local_id,
        error_trace=traceback.format_exc() if node_state == NodeState.FAILED else ""))
