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
from collections.abc import Iterable, Mapping
from functools import partial
from importlib.machinery import ModuleSpec
from types import FunctionType, ModuleType
from typing import Any

from flambeau._support.own_methods import belong


def alias(name: str, target: str, submodules: Iterable[str] = ()) -> None:
    """Let `name` and its submodules, which it names, be the module `target` and its own."""
    own = "flambeau" + name[name.index("."):]           # modules may say that they are torch's
    for path in ("", *(f".{sub}" for sub in submodules)):
        module = importlib.import_module(target + path)
        for package in {own, name}:
            sys.modules[package + path] = module


def parts(name: str, contents: Mapping[str, str]) -> None:
    """Let parts of a module be submodules of their own, as in PyTorch, which has parted it so: a
    name each, and what it exports ("*": all that the module exports). Functions and classes say
    that they stand there. Said at the end of the module, once its names are there.

    >>> from flambeau.masked.maskedtensor import creation
    >>> creation.__all__, creation.masked_tensor.__module__
    (['as_masked_tensor', 'masked_tensor'], 'flambeau.masked.maskedtensor.creation')
    """
    own = "flambeau" + name[name.index("."):]           # modules may say that they are torch's
    module = sys.modules[own]
    for part, exported in contents.items():
        names = list(module.__all__) if exported == "*" else exported.split()
        made = ModuleType(f"{name}.{part}", module.__doc__)
        has_parts = any(other.startswith(f"{part}.") for other in contents)
        made.__spec__ = ModuleSpec(made.__name__, None, is_package=has_parts)
        if has_parts:
            made.__path__ = []
        vars(made).update({each: getattr(module, each) for each in names}, __all__=names,
                          __getattr__=partial(getattr, module))
        if exported != "*":
            stand_in(f"{own.partition('.')[2]}.{part}", *(vars(made)[each] for each in names))
        inside, _, last = part.rpartition(".")
        home = sys.modules[f"{own}.{inside}"] if inside else module
        if not isinstance(vars(home).get(last), FunctionType):
            setattr(home, last, made)
        for package in {own, name}:
            sys.modules[f"{package}.{part}"] = made


def stand_in(module: str, *values: Any) -> None:
    """Let functions and classes say that they stand in another module, as they do in PyTorch:
    `stand_in("nn.parallel.scatter_gather", gather)`. It is where pickles look for them."""
    belong(f"{sys.modules['flambeau'].__name__}.{module}",
           *[value for value in values if isinstance(value, FunctionType | type)])


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
