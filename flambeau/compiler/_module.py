"""The form that `compile` gives to a module."""
from __future__ import annotations

from typing import Any

from flambeau.nn import Module


class OptimizedModule(Module):
    """A module around `_orig_mod`, which it calls and whose attributes it shows."""

    _orig_mod: Module

    def __init__(self, mod: Module):
        super().__init__()
        self._orig_mod = mod

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._orig_mod(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            return self._modules["_orig_mod"]
        return getattr(self._orig_mod, name)

    def __setattr__(self, name: str, value: Any) -> None:
        wraps = "_orig_mod" in self.__dict__.get("_modules", {})
        if wraps and (name == "training" or name not in self.__dict__):
            setattr(self._orig_mod, name, value)
        if not wraps or name in self.__dict__:
            super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        if name in self.__dict__:
            super().__delattr__(name)
        else:
            delattr(self._orig_mod, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._orig_mod)})


__all__ = ["OptimizedModule"]
