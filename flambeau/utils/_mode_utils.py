"""Helpers around dispatch modes."""
from __future__ import annotations

from typing import Any

from flambeau.dispatch.aten import subclass
from flambeau.utils._python_dispatch import _disable_current_modes


class no_dispatch(_disable_current_modes):
    """Inside, no `__torch_dispatch__` is asked, neither those of modes nor those of subclasses."""

    def _changes(self) -> Any:
        return (*super()._changes(), (subclass.disabled, True))


def all_same_mode(modes: Any) -> bool:
    """Are these all the same mode?

    >>> all_same_mode([1, 1]), all_same_mode([1, 2]), all_same_mode([])
    (True, False, True)
    """
    return all(mode == modes[0] for mode in modes)


__all__ = ["all_same_mode", "no_dispatch"]
