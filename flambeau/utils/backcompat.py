"""Warnings of what PyTorch did otherwise before 0.2. The switches are remembered; nothing warns."""
from __future__ import annotations

from collections.abc import Callable


class Warning:
    """One warning, on or off: `setter` keeps the switch and `getter` has it."""

    def __init__(self, setter: Callable[[bool], None], getter: Callable[[], bool]):
        self.setter, self.getter = setter, getter

    def get_enabled(self) -> bool:
        """Is it on?"""
        return self.getter()

    def set_enabled(self, value: bool) -> None:
        """Turn it on or off."""
        self.setter(value)

    enabled = property(get_enabled, set_enabled)


def _switch() -> Warning:
    """A warning that is off."""
    values = [False]

    def keep(value: bool) -> None:
        values[0] = value
    return Warning(keep, lambda: values[0])


broadcast_warning = _switch()
keepdim_warning = _switch()
