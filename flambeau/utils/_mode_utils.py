"""Helpers around dispatch modes."""
from __future__ import annotations

from flambeau.utils._python_dispatch import _disable_current_modes


class no_dispatch(_disable_current_modes):
    """Inside, no dispatch mode is active."""


__all__ = ["no_dispatch"]
