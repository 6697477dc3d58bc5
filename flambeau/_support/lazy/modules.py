"""Modules that are imported when they are first asked for, or found under a second name.

>>> import flambeau
>>> from flambeau.nn.quantized import dynamic
>>> dynamic is flambeau.ao.nn.quantized.dynamic
True
"""
from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterable
from typing import Any


def alias(name: str, target: str, submodules: Iterable[str] = ()) -> None:
    """Let `name` and its submodules, which it names, be the module `target` and its own."""
    own = "flambeau" + name[name.index("."):]           # modules may say that they are torch's
    for path in ("", *(f".{sub}" for sub in submodules)):
        module = importlib.import_module(target + path)
        for package in {own, name}:
            sys.modules[package + path] = module


def parts(name: str, submodules: str) -> None:
    """Let a module be its own submodules: those that PyTorch has parted it into, whose contents are
    all here. Said at the end of the module.

    >>> from flambeau.nn.parallel.replicate import replicate
    >>> replicate is flambeau.nn.parallel.replicate
    True
    """
    own = "flambeau" + name[name.index("."):]
    module = sys.modules[own]
    for part in submodules.split():
        vars(module).setdefault(part.rpartition(".")[2], module)
        for package in {own, name}:
            sys.modules[f"{package}.{part}"] = module


def lazy_modules(package: str, *names: str) -> Any:
    """A module's `__getattr__` that imports these submodules."""
    def get(name: str) -> Any:
        if name in names:
            return importlib.import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    return get


def lazy_names(module: str, **elsewhere: str) -> Any:
    """A module's `__getattr__` of names that stand in others: `name="flambeau.other"`."""
    def get(name: str) -> Any:
        if name in elsewhere:
            return getattr(importlib.import_module(elsewhere[name]), name)
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    return get


def lazy_package(package: str, **elsewhere: str) -> Any:
    """A package's `__getattr__` that imports any of its modules, and names that stand in one:
    `name="module"`."""
    def get(name: str) -> Any:
        if name in elsewhere:
            return getattr(importlib.import_module(f"{package}.{elsewhere[name]}"), name)
        if name[:2] != "__" and importlib.util.find_spec(f"{package}.{name}") is not None:
            return importlib.import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    return get
