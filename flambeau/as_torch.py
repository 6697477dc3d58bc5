"""Importing this module makes ``import torch`` give flambeau, everywhere in the process.

Code that says ``import torch``, ``from torch.nn import functional`` or
``importlib.metadata.version("torch")`` then finds flambeau, unmodified. A module is one object
under both names (``torch.nn is flambeau.nn``) and is imported when it is first asked for.

    >>> import flambeau.as_torch
    >>> import flambeau, torch.nn
    >>> torch is flambeau, torch.nn is flambeau.nn
    (True, True)

It has to happen before anything imports PyTorch itself: put it first in the program, or start
the program with ``flambeau run script.py``.

Processes that are handed the paths of this one (those of `multiprocessing`, and of joblib) find
``torch`` in the folder ``_alias``, which is put on the path for them and for `importlib.metadata`.
"""

from __future__ import annotations

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
        module.__spec__ = self.own_spec  # the import system has just written torch's over it

    def is_package(self, name: str) -> bool:
        return importlib.util.find_spec(self.own_name).submodule_search_locations is not None

    def get_code(self, name: str) -> Any:  # for `python -m torch.x`
        return importlib.util.find_spec(self.own_name).loader.get_code(self.own_name)

    def get_source(self, name: str) -> str | None:
        return importlib.util.find_spec(self.own_name).loader.get_source(self.own_name)


class _OpsLoader(importlib.abc.Loader):
    """Hands out the object that `torch.ops` is."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return flambeau.ops

    def exec_module(self, module: ModuleType) -> None:
        pass


class _Finder(importlib.abc.MetaPathFinder):
    """Finds ``torch.x.y`` as ``flambeau.x.y``."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name == "torch.ops":
            return importlib.machinery.ModuleSpec(name, _OpsLoader())
        own_name = _own_name(name)
        own = own_name and importlib.util.find_spec(own_name)
        if not own:
            return None
        spec = importlib.machinery.ModuleSpec(name, _Loader(own_name), origin=own.origin)
        spec.submodule_search_locations = own.submodule_search_locations
        return spec


def install() -> None:
    """What importing this module does; calling it again changes nothing."""
    for name in _ALIASES:
        present = sys.modules.get(name)
        if present is not None and present is not sys.modules.get(_ALIASES[name]):
            raise ImportError(
                f"flambeau.as_torch: {name!r} is already imported, from "
                f"{getattr(present, '__file__', None) or 'an unknown place'}. Import "
                f"flambeau.as_torch before everything that imports {name}, or start the program "
                "with `flambeau run script.py`.",
                name=name,
            )
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    if ALIAS_FOLDER not in sys.path:
        sys.path.insert(1, ALIAS_FOLDER)        # after the folder of the program
    sys.modules["torch"] = flambeau
    flambeau.__name__ = "torch"  # libraries look names up that begin with it
    vars(flambeau)["torch"] = flambeau  # and some write torch.torch


install()
