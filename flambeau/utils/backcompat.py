"""Warnings of what PyTorch did otherwise before 0.2. The switches are remembered; nothing warns."""
from __future__ import annotations


class Warning:
    """One warning, on or off."""

    def __init__(self) -> None:
        self._enabled = False

    @property
    def enabled(self) -> bool:
        """Is it on?"""
        return self._enabled

    @enabled.setter
    def enabled(self, value: bool) -> None:
        self._enabled = value


broadcast_warning = Warning()
keepdim_warning = Warning()
