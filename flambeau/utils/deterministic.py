"""How far results are the same in every run: `torch.utils.deterministic` is a module with a switch.
"""
from __future__ import annotations

import sys
import types


class _Deterministic(types.ModuleType):
    """The module, whose `fill_uninitialized_memory` is remembered: memory that `empty` gives is not
    filled."""

    _fill = True

    @property
    def fill_uninitialized_memory(self) -> bool:
        """Shall new memory be filled with known values in deterministic mode?"""
        return self._fill

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise RuntimeError(f"expected a bool, but got {type(mode).__name__}")
        self.__dict__["_fill"] = mode


sys.modules[__name__].__class__ = _Deterministic
