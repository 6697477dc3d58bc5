"""Which handler writes errors."""
from __future__ import annotations

from flambeau.distributed.elastic.multiprocessing.errors.error_handler import ErrorHandler

__all__ = ["get_error_handler"]


def get_error_handler() -> ErrorHandler:
    """A handler of errors."""
    return ErrorHandler()
