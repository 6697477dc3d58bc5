"""Where modules come from: the environment, a package, or several of these in order."""
from __future__ import annotations

import importlib
import sys
from abc import ABC, abstractmethod
from operator import attrgetter
from types import ModuleType
from typing import Any


class ObjNotFoundError(Exception):
    """An object is not found where its name says that it is."""


class ObjMismatchError(Exception):
    """There is another object where the name of one says that it is."""


def is_mangled(name: str) -> bool:
    """Is this the name of a module of a package?"""
    return name.startswith("<torch_package_")


def demangle(name: str) -> str:
    """The name of a module of a package, inside the package."""
    return name.partition(".")[2] if is_mangled(name) else name


def _home(name: str) -> str:
    """Where a module comes from, in words."""
    return name.partition(".")[0] if is_mangled(name) else "the current Python environment"


class Importer(ABC):
    """Imports modules, and knows the names of what is in them."""

    modules: dict[str, ModuleType]

    @abstractmethod
    def import_module(self, module_name: str) -> ModuleType:
        """Import a module."""

    def get_name(self, obj: Any, name: str | None = None) -> tuple[str, str]:
        """The module that this importer has `obj` in, and its name there."""
        if name is None:
            reduced = obj.__reduce__() if hasattr(obj, "__reduce__") and not isinstance(
                obj, type) and not callable(obj) else None
            name = reduced if isinstance(reduced, str) else \
                getattr(obj, "__qualname__", None) or obj.__name__
        original = self.whichmodule(obj, name)
        module_name = demangle(original)
        try:
            module = self.import_module(module_name)
            found = attrgetter(name)(module)
        except (ImportError, KeyError, AttributeError):
            raise ObjNotFoundError(f"{obj} was not found as {module_name}.{name}") from None
        if found is obj:
            return module_name, name
        here, there = _home(original), _home(module.__name__)
        first = here if is_mangled(original) else "sys_importer"
        second = there if is_mangled(module.__name__) else "sys_importer"
        first = f"the importer for {first}" if is_mangled(original) else f"'{first}'"
        second = f"the importer for {second}" if is_mangled(module.__name__) else f"'{second}'"
        raise ObjMismatchError(
            f"\n\nThe object provided is from '{original}', which is coming from {here}.\nHowever, "
            f"when we import '{module.__name__}', it's coming from {there}.\nTo fix this, make "
            f"sure this 'PackageExporter's importer lists {first} before {second}.")

    def whichmodule(self, obj: Any, name: str) -> str:
        """The name of the module that `obj` is in."""
        module_name = getattr(obj, "__module__", None)
        if module_name is not None:
            return module_name
        for candidate, module in list(self.modules.items()):
            if candidate in ("__main__", "__mp_main__") or module is None:
                continue
            found: Any = module
            for part in name.split("."):
                found = getattr(found, part, None)
            if found is obj:
                return candidate
        return "__main__"


class _SysImporter(Importer):
    """Python's own imports."""

    def import_module(self, module_name: str) -> ModuleType:
        """Import a module of the environment."""
        return importlib.import_module(module_name)

    @property
    def modules(self) -> dict[str, ModuleType]:
        """The modules that are imported."""
        return sys.modules


sys_importer = _SysImporter()


class OrderedImporter(Importer):
    """Several importers; the first that has a module is asked for it.

    >>> OrderedImporter(sys_importer).import_module("math").__name__
    'math'
    """

    def __init__(self, *args: Importer):
        self._importers = list(args)

    def import_module(self, module_name: str) -> ModuleType:
        """Import a module from the first importer that has it."""
        last: ModuleNotFoundError | None = None
        for importer in self._importers:
            if not hasattr(importer, "import_module"):
                raise TypeError(f"{importer} is not a Importer. All importers should inherit from "
                                "Importer.")
            try:
                return importer.import_module(module_name)
            except ModuleNotFoundError as error:
                last = error
        if last is not None:
            raise last
        raise ModuleNotFoundError(module_name)

    def get_name(self, obj: Any, name: str | None = None) -> tuple[str, str]:
        """The module and name of `obj`, from the first importer that has it."""
        last: Exception | None = None
        for importer in self._importers:
            try:
                return importer.get_name(obj, name)
            except (ObjNotFoundError, ObjMismatchError) as error:
                last = last or error
        if last is not None:
            raise last
        return super().get_name(obj, name)

    def whichmodule(self, obj: Any, name: str) -> str:
        """The name of the module that `obj` is in, from the first importer that knows it."""
        for importer in self._importers:
            found = importer.whichmodule(obj, name)
            if found != "__main__":
                return found
        return "__main__"


__all__ = ["Importer", "ObjMismatchError", "ObjNotFoundError", "OrderedImporter"]
