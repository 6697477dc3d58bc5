"""Agents that lose messages, for tests: there are none."""
from __future__ import annotations


def is_available() -> bool:
    """False: no agent here loses messages on purpose."""
    return False
