"""Importing this module makes ``import torch`` give flambeau, everywhere in the process.

Code that says ``import torch``, ``from torch.nn import functional`` or
``importlib.metadata.version("torch")`` then finds flambeau, unmodified. A module is one object
under both names (``torch.nn is flambeau.nn``) and is imported when it is first asked for. Modules,
classes and functions say that they are torch's: libraries ask for ``type(x).__module__``, and
errors, reprs and pickles show it.

    >>> import flambeau.as_torch
    >>> import flambeau, torch.nn
    >>> torch is flambeau, torch.nn is flambeau.nn
    (True, True)
    >>> torch.nn.Linear
    <class 'torch.nn.modules.linear.Linear'>

It has to happen before anything imports PyTorch itself: put it first in the program, or start
the program with ``flambeau run script.py``.

Processes that are handed the paths of this one (those of `multiprocessing`, and of joblib) find
``torch`` in the folder ``_alias``, which is put on the path for them and for `importlib.metadata`.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import flambeau
from flambeau.core.op import public
from flambeau.core.return_types import ReturnType

__all__ = ["install"]

ALIAS_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_alias")
_ALIASES = {"torch": "flambeau", "functorch": "flambeau.functorch"}


def _own_name(name: str) -> str | None:
    """The name in flambeau of a module that is imported as ``name``; None for other packages."""
    package, dot, rest = name.partition(".")
    own = _ALIASES.get(package)
    return own and own + dot + rest


class _Loader(importlib.abc.InspectLoader):
    """Hands out flambeau's module instead of executing a second copy."""

    def __init__(self, own_name: str):
        self.own_name = own_name

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = importlib.import_module(self.own_name)
        self.own_spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # the import system has just written torch's over it; modules of settings refuse the name
        vars(module)["__spec__"] = self.own_spec

    def is_package(self, name: str) -> bool:
        return importlib.util.find_spec(self.own_name).submodule_search_locations is not None

    def get_code(self, name: str) -> Any:  # for `python -m torch.x`
        return self._own_loader().get_code(self.own_name)

    def get_source(self, name: str) -> str | None:
        return self._own_loader().get_source(self.own_name)

    def _own_loader(self) -> Any:
        return importlib.util.find_spec(self.own_name).loader


class _OpsLoader(importlib.abc.Loader):
    """Hands out the object that `torch.ops` is."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return flambeau.ops

    def exec_module(self, module: ModuleType) -> None:
        pass


class _OwnLoader(importlib.machinery.SourceFileLoader):
    """Executes a module of flambeau's under torch's name, which its classes and functions take."""

    def get_filename(self, name: str | None = None) -> str:     # under either name
        return os.fspath(self.path)

    def exec_module(self, module: ModuleType) -> None:
        module.__name__ = seen = _seen_name(self.name)
        if seen != self.name:
            sys.modules[seen] = module          # where dataclasses and pickles look
        try:
            code = self.get_code(self.name)
            assert code is not None
            exec(code, vars(module))
        except BaseException:
            sys.modules.pop(seen, None)
            raise
        sys.modules[seen] = sys.modules[self.name]      # another, where a module is an alias


class _Finder(importlib.abc.MetaPathFinder):
    """Finds ``torch.x.y`` as ``flambeau.x.y``, and ``flambeau.x.y`` as what calls itself torch."""

    def find_spec(self, name: str, path: Sequence[str] | None = None,
                  target: ModuleType | None = None) -> importlib.machinery.ModuleSpec | None:
        if name == "torch.ops":
            return importlib.machinery.ModuleSpec(name, _OpsLoader())
        if name.startswith("flambeau."):
            found = importlib.machinery.PathFinder.find_spec(name, path, target)
            if found is not None and type(found.loader) is importlib.machinery.SourceFileLoader:
                found.loader = _OwnLoader(found.loader.name, found.loader.path)
            return found
        own_name = _own_name(name)
        own = own_name and importlib.util.find_spec(own_name)
        if not own:
            return None
        spec = importlib.machinery.ModuleSpec(name, _Loader(own_name), origin=own.origin)
        spec.submodule_search_locations = own.submodule_search_locations
        return spec


def _seen_name(own_name: str) -> str:
    """The name under which programs know one of flambeau's modules; `torch.ops` is no package."""
    if own_name.startswith("flambeau.ops"):
        return own_name
    return "torch" + own_name.removeprefix("flambeau")


def _rename(value: Any) -> None:
    if isinstance(value, ModuleType):
        return
    where = getattr(value, "__module__", None)
    if type(where) is str and where.partition(".")[0] == "flambeau":
        with contextlib.suppress(AttributeError, TypeError):        # what C made is read-only
            value.__module__ = _seen_name(where)


def _rename_loaded() -> None:
    """Let what has been imported before say torch's names."""
    own = {name: module for name, module in sys.modules.items()
           if name == "flambeau" or name.startswith("flambeau.")}
    for name, module in own.items():
        if not isinstance(module, ModuleType):
            continue
        if module.__name__ == name:
            module.__name__ = _seen_name(name)
        sys.modules.setdefault(_seen_name(name), module)
        if type(module.__loader__) is importlib.machinery.SourceFileLoader:
            assert module.__spec__ is not None
            module.__loader__ = module.__spec__.loader = _OwnLoader(name, module.__loader__.path)
        for value in vars(module).values():
            _rename(value)
    for results in ReturnType.__subclasses__():
        _rename(results)
    for functions in public.values():
        for function in functions.values():
            _rename(function)


def install() -> None:
    """What importing this module does; calling it again changes nothing."""
    for name in _ALIASES:
        present = sys.modules.get(name)
        if present is not None and present is not sys.modules.get(_ALIASES[name]):
            raise ImportError(
                f"flambeau.as_torch: {name!r} is already imported, from "
                f"{getattr(present, '__file__', None) or 'an unknown place'}. Import "
                f"flambeau.as_torch before everything that imports {name}, or start the program "
                "with `flambeau run script.py`.", name=name)
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    if ALIAS_FOLDER not in sys.path:
        sys.path.insert(1, ALIAS_FOLDER)        # after the folder of the program
    sys.modules["torch"] = flambeau
    _rename_loaded()
    vars(flambeau)["torch"] = flambeau  # and some write torch.torch


install()
