"""The logger of sharded tensors."""
from __future__ import annotations

import logging

from flambeau.distributed._shard.sharded_tensor.logging_handlers import _log_handlers

__all__: list[str] = []


def _get_or_create_logger() -> logging.Logger:
    handler, name = _get_logging_handler()
    logger = logging.getLogger(f"sharding-spec-{name}")
    logger.setLevel(logging.DEBUG)
    handler.setFormatter(logging.Formatter(
        "%(asctime)s %(filename)s:%(lineno)s %(levelname)s p:%(processName)s t:%(threadName)s: "
        "%(message)s"))
    logger.propagate = False
    logger.addHandler(handler)
    return logger


def _get_logging_handler(destination: str = "default") -> tuple[logging.Handler, str]:
    handler = _log_handlers[destination]
    return handler, f"{type(handler).__name__}-{destination}"
