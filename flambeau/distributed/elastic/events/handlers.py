"""Where events are written."""
from __future__ import annotations

import logging

_log_handlers: dict[str, logging.Handler] = {"console": logging.StreamHandler(),
                                             "dynamic_rendezvous": logging.NullHandler(),
                                             "null": logging.NullHandler()}


def get_logging_handler(destination: str = "null") -> logging.Handler:
    """The handler of a destination."""
    return _log_handlers[destination]
