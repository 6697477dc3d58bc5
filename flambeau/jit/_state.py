"""Whether TorchScript is on, and the classes that were scripted."""
from __future__ import annotations

import os
import weakref
from typing import Any

from flambeau._support.c_functions import bound_in_c
from flambeau._support.lazy.modules import stand_in


def _missing(what: str, hint: str = "") -> Any:
    raise NotImplementedError(f"{what}: flambeau has no TorchScript{hint}")


@bound_in_c
class CompilationUnit:
    """What holds compiled functions: none, as there is no compiler."""

    def __init__(self, lang: str | None = None, _frames_up: int = 0):
        if lang is not None:
            _missing("torch.jit.CompilationUnit")

    def define(self, *args: Any, **kwargs: Any) -> None:
        """Not offered: there is no compiler for source in TorchScript."""
        _missing("CompilationUnit.define")

    def find_function(self, name: str) -> None:
        """None: nothing has been compiled."""

    def get_functions(self) -> list[Any]:
        """Empty: nothing has been compiled."""
        return []

    def drop_all_functions(self) -> None:
        """There are none."""

    def set_optimized(self, optimized: bool) -> None:
        """Has no effect: nothing is compiled."""


class EnabledProxy:
    """A switch that is true or false, as `PYTORCH_JIT` says at first."""

    def __init__(self) -> None:
        self.enabled = os.environ.get("PYTORCH_JIT", "1") != "0"

    def __bool__(self) -> bool:
        return self.enabled


_enabled = EnabledProxy()


def disable() -> None:
    """Let `script` and `trace` give what they are given."""
    _enabled.enabled = False


def enable() -> None:
    """Let `script` and `trace` work."""
    _enabled.enabled = True


_python_cu = CompilationUnit()
_script_classes: dict[Any, Any] = {}
_name_to_pyclass: dict[str, Any] = {}


def _add_script_class(python_class: Any, script_class: Any) -> None:
    _script_classes[python_class] = script_class
    _name_to_pyclass[script_class.qualified_name()] = python_class


def _get_script_class(python_class: Any) -> Any:
    override = getattr(python_class, "_jit_override_qualname", None)
    if override is not None:
        python_class = _get_python_class(override)
    return _script_classes.get(python_class)


def _get_python_class(qualified_name: str) -> Any:
    return _name_to_pyclass.get(qualified_name)


def _clear_class_state() -> None:
    _script_classes.clear()
    _name_to_pyclass.clear()


_jit_caching_layer: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
_jit_function_overload_caching: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


def _try_get_jit_cached_function(key: Any) -> Any:
    return _jit_caching_layer.get(key)


def _set_jit_function_cache(key: Any, value: Any) -> None:
    _jit_caching_layer[key] = value


def _try_get_jit_cached_overloads(key: Any) -> Any:
    return _jit_function_overload_caching.get(key)


def _set_jit_overload_cache(key: Any, compiled_fns: Any) -> None:
    _jit_function_overload_caching[key] = compiled_fns
stand_in("jit", CompilationUnit)
