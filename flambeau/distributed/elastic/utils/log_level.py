"""The level of logs."""
from __future__ import annotations


def get_log_level() -> str:
    """The level of loggers for which the variable LOGLEVEL says nothing.

    >>> get_log_level()
    'WARNING'
    """
    return "WARNING"
