"""Modules of switches, as `torch._inductor.config`: `patch` changes them for a block.

>>> from flambeau.fx.experimental import _config
>>> with _config.patch(use_duck_shape=False):
...     _config.use_duck_shape
False
>>> _config.use_duck_shape
True
"""
from __future__ import annotations

import contextlib
import copy
import functools
import sys
import types
from collections.abc import Callable
from typing import Any

_HIDDEN = ("install", "annotations", "Any", "TYPE_CHECKING")


class ConfigPatch(contextlib.ContextDecorator):
    """Switches with other values, for a block or a function."""

    def __init__(self, module: types.ModuleType, changes: dict[str, Any]):
        self.module, self.changes = module, changes
        self.before: list[dict[str, Any]] = []

    def __enter__(self) -> ConfigPatch:
        self.before.append({name: _get(self.module, name) for name in self.changes})
        for name, value in self.changes.items():
            _set(self.module, name, value)
        return self

    def __exit__(self, *exception: Any) -> None:
        for name, value in self.before.pop().items():
            _set(self.module, name, value)


def _holder(module: Any, name: str) -> tuple[Any, str]:
    *path, last = name.split(".")
    return functools.reduce(getattr, path, module), last


def _get(module: Any, name: str) -> Any:
    holder, last = _holder(module, name)
    if not hasattr(holder, last):
        raise AttributeError(f"{module.__name__}.{name} does not exist")
    return getattr(holder, last)


def _set(module: Any, name: str, value: Any) -> None:
    holder, last = _holder(module, name)
    setattr(holder, last, value)


def install(name: str) -> None:
    """Give a module of switches `patch`, `save_config`, `load_config`, `shallow_copy_dict` …"""
    module = sys.modules[name]
    defaults = copy.deepcopy(_switches(module))

    def patch(arg1: Any = None, arg2: Any = None, **kwargs: Any) -> ConfigPatch:
        """Other values for switches: `patch(name=value)`, `patch("a.b", value)`, `patch({...})`."""
        changes = dict(kwargs) if arg1 is None else dict(arg1) if isinstance(arg1, dict) \
            else {arg1: arg2}
        return ConfigPatch(module, changes)

    def load_config(maybe_pickled_config: Any) -> None:
        """Set switches as a dict, or what `save_config` gave, says."""
        import pickle
        given = maybe_pickled_config if isinstance(maybe_pickled_config, dict) \
            else pickle.loads(maybe_pickled_config)
        for key, value in given.items():
            _set(module, key, value)
    functions: dict[str, Callable[..., Any]] = {
        "patch": patch, "load_config": load_config,
        "save_config": lambda: __import__("pickle").dumps(_switches(module)),
        "get_config_copy": lambda: copy.deepcopy(_switches(module)),
        "shallow_copy_dict": lambda: dict(_switches(module)),
        "to_dict": lambda: dict(_switches(module)),
        "get_default": lambda key: defaults[key],
        "is_default": lambda key: _switches(module).get(key) == defaults.get(key),
        "get_hash": lambda: str(sorted(map(repr, _switches(module).items()))).encode()}
    for key, function in functions.items():
        setattr(module, key, function)


def _switches(module: types.ModuleType) -> dict[str, Any]:
    return {key: value for key, value in vars(module).items()
            if not key.startswith("__") and key not in _HIDDEN and not callable(value)
            and not isinstance(value, types.ModuleType)}


__all__ = ["ConfigPatch", "install"]
