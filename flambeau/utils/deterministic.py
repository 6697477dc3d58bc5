"""How far results are the same in every run: `torch.utils.deterministic` is a module with a switch.
"""
from __future__ import annotations

import sys
import types

from flambeau._support import settings


class _Deterministic(types.ModuleType):
    """The module, whose `fill_uninitialized_memory` is a switch."""

    @property
    def fill_uninitialized_memory(self) -> bool:
        """Shall new memory be filled with known values in deterministic mode?"""
        return settings._state["fills"]

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise RuntimeError(f"expected a bool, but got {type(mode).__name__}")
        settings.fill_uninitialized_memory(mode)


sys.modules[__name__].__class__ = _Deterministic
