"""Helpers around dispatch modes."""
from __future__ import annotations

from typing import Any

from flambeau.dispatch.aten import subclass
from flambeau.utils._python_dispatch import _disable_current_modes


class no_dispatch(_disable_current_modes):
    """Inside, no `__torch_dispatch__` is asked, neither those of modes nor those of subclasses."""

    def _changes(self) -> Any:
        return (*super()._changes(), (subclass.disabled, True))


__all__ = ["no_dispatch"]
