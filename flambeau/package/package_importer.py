"""`PackageImporter`: modules and objects from a package."""
from __future__ import annotations

import builtins
import contextlib
import importlib.machinery
import importlib.util
import io
import itertools
import linecache
import os
import pickle
from collections.abc import Callable
from operator import attrgetter
from types import ModuleType
from typing import Any

import numpy as np

import flambeau
from flambeau._serialization.checkpoint_names import find_global
from flambeau._serialization.locations import restorer
from flambeau._serialization.unpickling import storage_reference, typed_storage
from flambeau._serialization.zip_reader import opened
from flambeau.package.file_structure_representation import Directory, structure
from flambeau.package.glob_group import GlobPattern
from flambeau.package.importer import Importer, demangle, is_mangled

_numbers = itertools.count()


class PackageImporter(Importer):
    """Reads a package that `PackageExporter` (or PyTorch's) has written. Its modules are its own:
    a module `a` of it is imported as `<torch_package_0>.a`, beside any other `a`.

    Importing a module or unpickling an object from a package **runs the code in it**, by design:
    open packages only if you trust who made them.
    """

    def __init__(self, file_or_buffer: Any,
                 module_allowed: Callable[[str], bool] = lambda module_name: True):
        self.filename = os.fspath(file_or_buffer) if isinstance(
            file_or_buffer, (str, os.PathLike)) else "<binary>"
        if isinstance(file_or_buffer, str | os.PathLike) and not os.path.exists(file_or_buffer):
            raise RuntimeError("open file failed because of errno 2 on fopen: No such file or "
                               f"directory, file path: {self.filename}")
        self._archive = opened(file_or_buffer)
        names = self._archive.namelist()
        self._root = next(n for n in names if n.endswith(".data/extern_modules")
                          ).removesuffix(".data/extern_modules")
        self._names = [n.removeprefix(self._root) for n in names]
        self._id = f"<torch_package_{next(_numbers)}>"
        self.modules: dict[str, ModuleType] = {}
        self.extern_modules = self._read(".data/extern_modules").decode().split()
        for name in self.extern_modules:
            if not module_allowed(name):
                raise ImportError(f"package '{self.filename}' needs the external module '{name}' "
                                  "but that module has been disallowed")
        self._builtins = {**vars(builtins), "__import__": self.__import__}
        self._storages: dict[str, Any] = {}

    # ---- files ----------------------------------------------------------------------------------

    def _read(self, name: str) -> bytes:
        try:
            return self._archive.read(self._root + name)
        except KeyError:
            raise RuntimeError(f"PytorchStreamReader failed locating file {name}: file not found"
                               ) from None

    def load_binary(self, package: str, resource: str) -> bytes:
        """The bytes of a resource."""
        return self._read(_path(package, resource))

    def load_text(self, package: str, resource: str, encoding: str = "utf-8",
                  errors: str = "strict") -> str:
        """The text of a resource."""
        return self.load_binary(package, resource).decode(encoding, errors)

    def load_pickle(self, package: str, resource: str, map_location: Any = None) -> Any:
        """The object of a resource. Unpickling runs code of the package."""
        data = io.BytesIO(self.load_binary(package, resource))
        restore = restorer(map_location)
        importer = self

        class Unpickler(pickle.Unpickler):
            def find_class(self, module: str, name: str) -> Any:
                return importer._global(module, name)

            def persistent_load(self, saved_id: Any) -> Any:
                return importer._persistent(saved_id, restore)
        return Unpickler(data).load()

    def _global(self, module: str, name: str) -> Any:
        if not self._has(module):
            with contextlib.suppress(LookupError):
                return find_global(module, name)
        return attrgetter(name)(self.import_module(module))

    def _persistent(self, saved_id: Any, restore: Any) -> Any:
        if not isinstance(saved_id, tuple) or saved_id[0] != "storage":
            raise NotImplementedError(f"PackageImporter: objects of kind {saved_id[0]!r}")
        kind, key, location, count = storage_reference(
            (*saved_id[:2], str(saved_id[2]), *saved_id[3:]), 5)
        if key not in self._storages:
            plain = kind is flambeau.UntypedStorage
            dtype = (flambeau.uint8 if plain else kind.dtype).numpy
            data = self._read(f".data/{key.removesuffix('.storage')}.storage")
            array = np.frombuffer(bytearray(data), dtype, count)
            self._storages[key] = typed_storage(array, kind, location, restore)
        return self._storages[key]

    def file_structure(self, *, include: GlobPattern = "**", exclude: GlobPattern = ()
                       ) -> Directory:
        """The files of the package, as a tree."""
        return structure(self.filename, self._names, include, exclude)

    def id(self) -> str:
        """The name in front of the names of this package's modules."""
        return self._id

    def python_version(self) -> str | None:
        """The version of Python that wrote the package."""
        if ".data/python_version" not in self._names:
            return None
        return self._read(".data/python_version").decode().strip()

    # ---- modules --------------------------------------------------------------------------------

    def _source(self, name: str) -> tuple[str, bool] | None:
        """The file of a module, and whether it is a package; None if it is not here."""
        path = name.replace(".", "/")
        if f"{path}/__init__.py" in self._names:
            return f"{path}/__init__.py", True
        if f"{path}.py" in self._names:
            return f"{path}.py", False
        if any(n.startswith(f"{path}/") and n.endswith(".py") for n in self._names):
            return "", True                     # a folder without a file of its own
        return None

    def _has(self, name: str) -> bool:
        return self._source(name) is not None

    def import_module(self, name: str, package: str | None = None) -> ModuleType:
        """Import a module of the package, or one that it declares to be external. This runs the
        module's code."""
        return self._import(demangle(importlib.util.resolve_name(name, package)
                                     if name.startswith(".") else name))

    def _import(self, name: str) -> ModuleType:
        if name in self.modules:
            return self.modules[name]
        parent = name.rpartition(".")[0]
        if self._source(name) is None:
            if self._is_external(name):
                return _external(name)
            raise ModuleNotFoundError(
                f'No module named "{name}" in self-contained archive "{self.filename}" and the '
                "module is also not in the list of allowed external modules: "
                f"{self.extern_modules}", name=name)
        if parent and self._source(parent) is not None:
            self._import(parent)
            if name in self.modules:            # the parent has imported it
                return self.modules[name]
        return self._run(name, parent)

    def _is_external(self, name: str) -> bool:
        parts = name.split(".")
        return any(".".join(parts[:i]) in self.extern_modules for i in range(1, len(parts) + 1))

    def _run(self, name: str, parent: str) -> ModuleType:
        file, is_package = self._source(name) or ("", False)
        module = ModuleType(f"{self._id}.{name}")
        spec = importlib.machinery.ModuleSpec(name, self,           # type: ignore[arg-type]
                                              origin="<package_importer>", is_package=is_package)
        space = vars(module)
        space.update({
            "__spec__": spec, "__loader__": self, "__builtins__": self._builtins,
            "__file__": f"{self._id}.{file}" if file else None, "__torch_package__": True,
            "__package__": module.__name__ if is_package else
            f"{self._id}.{parent}" if parent else self._id})
        if is_package:
            module.__path__ = []
        self.modules[name] = module
        if file:
            source = self._read(file).decode()
            shown = f"{self._id}.{file}"
            linecache.cache[shown] = len(source), None, source.splitlines(keepends=True), shown
            try:
                exec(compile(source, shown, "exec", dont_inherit=True), space)
            except BaseException:
                del self.modules[name]
                raise
        if parent in self.modules:
            setattr(self.modules[parent], name.rpartition(".")[2], module)
        return self.modules[name]

    def __import__(self, name: str, globals: Any = None, locals: Any = None, fromlist: Any = (),
                   level: int = 0) -> ModuleType:
        """What `import` statements of the package's modules do."""
        if level:
            package = demangle((globals or {})["__package__"])
            base = package.split(".")
            name = ".".join([*base[:len(base) - level + 1], *([name] if name else [])])
        module = self._import(name)
        if not fromlist:
            return module if "." not in name else self._import(name.partition(".")[0])
        for part in fromlist:
            if part != "*" and not hasattr(module, part) and self._has(f"{name}.{part}"):
                self._import(f"{name}.{part}")
        return module

    def get_source(self, module_name: str) -> str:
        """The source of a module of the package."""
        found = self._source(demangle(module_name))
        if found is None:
            raise ImportError(f"No module named {module_name!r}")
        return self._read(found[0]).decode() if found[0] else ""


def _path(package: str, resource: str) -> str:
    return f"{package.replace('.', '/')}/{resource}" if package else resource


def _external(name: str) -> ModuleType:
    """A module of the environment; what a package calls torch is flambeau."""
    head, dot, rest = name.partition(".")
    return importlib.import_module(("flambeau" if head == "torch" else head) + dot + rest)


def is_from_package(obj: Any) -> bool:
    """Does an object, or its class, come from a package?

    >>> import math
    >>> is_from_package(math)
    False
    """
    name = obj.__name__ if isinstance(obj, ModuleType) else getattr(
        obj if isinstance(obj, type) else type(obj), "__module__", "")
    return is_mangled(name or "")


__all__ = ["PackageImporter"]
