"""`torch._assert`: an assertion that tracing records."""
from __future__ import annotations

from typing import Any

from flambeau.core.calling import overrides


def _assert(condition: Any, message: str) -> None:
    """`assert condition, message`, as a function."""
    if overrides.needs_override((condition,)):
        return overrides.handle_torch_function(_assert, (condition,), condition, message)
    assert condition, message
    return None


_assert.__module__ = "torch"
