"""The level of logs."""
from __future__ import annotations

import os


def get_log_level() -> str:
    """The level that the variable LOGLEVEL names, WARNING without it."""
    return os.environ.get("LOGLEVEL", "WARNING")
