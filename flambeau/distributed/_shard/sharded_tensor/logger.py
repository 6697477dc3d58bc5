"""The logger of sharded tensors."""
from __future__ import annotations

import logging

from flambeau.distributed._shard.sharded_tensor.logging_handlers import _log_handlers
from flambeau.distributed.c10d_logger import _make_logger

__all__: list[str] = []


def _get_or_create_logger() -> logging.Logger:
    return _make_logger("sharding-spec", *_get_logging_handler())


def _get_logging_handler(destination: str = "default") -> tuple[logging.Handler, str]:
    handler = _log_handlers[destination]
    return handler, type(handler).__name__
