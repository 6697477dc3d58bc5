"""`PackageExporter`: objects, with the code that they need, in one file."""
from __future__ import annotations

import importlib.util
import io
import os
import pickletools
import platform
import sys
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flambeau._serialization.checkpoint_names import global_name
from flambeau._serialization.pickling import CheckpointPickler, Storages
from flambeau.package._module_graph import _Graph, imported_modules
from flambeau.package.glob_group import GlobGroup, GlobPattern
from flambeau.package.importer import Importer, OrderedImporter, demangle, is_mangled, sys_importer

_MOCK = '''"""What stands for modules that are not in this package."""


class MockedObject:
    """Can be named, but not used."""

    def __init__(self, name, *, _suppress_err=False):
        if not _suppress_err:
            raise NotImplementedError(
                f"Object '{name}' was mocked out during packaging but it is being used in "
                "'__init__'. If this error is happening during 'load_pickle', please ensure that "
                "your pickled object doesn't contain any mocked objects.")
        self.__dict__["_name"] = name

    def __repr__(self):
        return f"MockedObject({self._name})"

    def __getattr__(self, attr):
        if attr.startswith("__"):
            raise AttributeError(attr)
        return MockedObject(f"{self._name}.{attr}", _suppress_err=True)

    def __mro_entries__(self, bases):
        return (MockedObject,)


def _used(method):
    def use(self, *args, **kwargs):
        raise NotImplementedError(
            f"Object '{self._name}' was mocked out during packaging but it is being used in "
            f"{method}")
    return use


for _method in ("__call__ __add__ __radd__ __sub__ __mul__ __truediv__ __getitem__ __setitem__ "
                "__len__ __iter__ __enter__ __exit__ __lt__ __gt__ __neg__ __contains__").split():
    setattr(MockedObject, _method, _used(_method))
'''
_MOCKED = """from _mock import MockedObject
def __getattr__(attr: str):
    return MockedObject(__name__ + '.' + attr, _suppress_err=True)
"""
_UNMATCHED = "Module did not match against any action pattern. Extern, mock, or intern it."
_DENIED = "Module was denied by a pattern."
_NO_SOURCE = "Module is a C extension module. Torch.package supports Python modules only."
_NOT_FOUND = "Module not found"


class PackagingError(Exception):
    """Modules that the package needs are in its way."""

    def __init__(self, broken: dict[str, list[str]], debug_info: str = ""):
        lines = []
        for reason, modules in broken.items():
            lines += [f"* {reason}", *(f"    {name}" for name in modules)]
        text = "\n" + "\n".join(lines) + "\n"
        text += f"\n{debug_info}\n" if debug_info else (
            "\nSet debug=True when invoking PackageExporter for a visualization of where broken "
            "modules are coming from!\n")
        super().__init__(text)


class EmptyMatchError(Exception):
    """A pattern with `allow_empty=False` has matched no module."""


@dataclass
class _Rule:
    action: str
    group: GlobGroup
    allow_empty: bool
    matched: bool = False


class PackageExporter:
    """Writes a package: pickled objects, resources, and the source of the modules that they need.
    For each of those a rule says what becomes of it: `intern` puts it into the package, `extern`
    imports it from the environment, `mock` replaces it by what cannot be used, `deny` refuses it.
    The standard library and flambeau (there: torch) are external.

    >>> import io
    >>> import flambeau as torch
    >>> from flambeau.package import PackageImporter
    >>> file = io.BytesIO()
    >>> with PackageExporter(file) as exporter:
    ...     exporter.save_pickle("model", "weights.pkl", {"w": torch.ones(2)})
    ...     exporter.save_source_string("code", "answer = 42")
    >>> _ = file.seek(0)
    >>> importer = PackageImporter(file)
    >>> importer.load_pickle("model", "weights.pkl"), importer.import_module("code").answer
    ({'w': tensor([1., 1.])}, 42)
    """

    def __init__(self, f: Any, importer: Importer | Sequence[Importer] = sys_importer,
                 debug: bool = False):
        self.debug = debug
        if not isinstance(importer, Importer | Sequence):
            raise TypeError("importer arg should be an Importer or a sequence of Importers, got "
                            f"{type(importer)} instead.")
        self.importer: Importer = importer if isinstance(importer, Importer) \
            else OrderedImporter(*importer)
        self.buffer = f
        name = Path(f).stem if isinstance(f, (str, os.PathLike)) else "archive"
        self._zip = zipfile.ZipFile(f, "w", zipfile.ZIP_STORED)
        self._root = f"{name}/"
        self._rules: list[_Rule] = []
        self._actions: dict[str, str] = {}
        self._broken: dict[str, str] = {}
        self._written: set[str] = set()
        self._storages = Storages()
        self._saved_storages = 0
        self._ids = 0
        self._hooks: dict[str, list[Callable[[str], Any]]] = {
            "intern": [], "extern": [], "mock": []}
        self.dependency_graph = _Graph()

    # ---- rules ----------------------------------------------------------------------------------

    def _rule(self, action: str, include: GlobPattern, exclude: GlobPattern, allow_empty: bool
              ) -> None:
        self._rules.append(_Rule(action, GlobGroup(include, exclude=exclude), allow_empty))

    def intern(self, include: GlobPattern, *, exclude: GlobPattern = (), allow_empty: bool = True
               ) -> None:
        """Put modules that match, where they are needed, into the package."""
        self._rule("intern", include, exclude, allow_empty)

    def extern(self, include: GlobPattern, *, exclude: GlobPattern = (), allow_empty: bool = True
               ) -> None:
        """Let modules that match be imported from the environment."""
        self._rule("extern", include, exclude, allow_empty)

    def mock(self, include: GlobPattern, *, exclude: GlobPattern = (), allow_empty: bool = True
             ) -> None:
        """Replace modules that match by what raises when it is used."""
        self._rule("mock", include, exclude, allow_empty)

    def deny(self, include: GlobPattern, *, exclude: GlobPattern = ()) -> None:
        """Refuse to need modules that match."""
        self._rule("deny", include, exclude, True)

    def _hook(self, action: str, hook: Callable[..., None]) -> Any:
        from flambeau.utils.hooks import RemovableHandle
        hooks: dict[int, Any] = {}
        handle = RemovableHandle(hooks)
        hooks[handle.id] = hook
        self._hooks[action].append(lambda name: [h(self, name) for h in hooks.values()])
        return handle

    def register_intern_hook(self, hook: Callable[[PackageExporter, str], None]) -> Any:
        """Call `hook(exporter, name)` for each module that is put into the package."""
        return self._hook("intern", hook)

    def register_extern_hook(self, hook: Callable[[PackageExporter, str], None]) -> Any:
        """Call `hook(exporter, name)` for each module that is external."""
        return self._hook("extern", hook)

    def register_mock_hook(self, hook: Callable[[PackageExporter, str], None]) -> Any:
        """Call `hook(exporter, name)` for each module that is mocked."""
        return self._hook("mock", hook)

    # ---- what is saved --------------------------------------------------------------------------

    def _write(self, path: str, data: str | bytes) -> None:
        if path in self._written:
            raise AssertionError(f"Tried to write file '{path}', but it already exists in this "
                                 "archive. Please file a bug.")
        self._written.add(path)
        self._zip.writestr(self._root + path, data)

    def save_binary(self, package: str, resource: str, binary: bytes) -> None:
        """Save bytes."""
        self._write(self._path(package, resource), binary)

    def save_text(self, package: str, resource: str, text: str) -> None:
        """Save text."""
        self._write(self._path(package, resource), text.encode())

    def save_pickle(self, package: str, resource: str, obj: Any, dependencies: bool = True,
                    pickle_protocol: int = 3) -> None:
        """Save an object and, unless told otherwise, the modules that it needs."""
        path = self._path(package, resource)
        if pickle_protocol not in (3, 4):
            raise AssertionError("torch.package only supports pickle protocols 3 and 4")
        data = io.BytesIO()
        _PackagePickler(data, pickle_protocol, self._storages, self.importer).dump(obj)
        pickled = data.getvalue()
        self._write(path, pickled)
        for storage in self._storages.found[self._saved_storages:]:
            self._write(f".data/{self._saved_storages}.storage", bytes(storage))
            self._saved_storages += 1
        source = f"<{package}.{resource}>"
        for module in _globals_of(pickled) if dependencies else ():
            self.dependency_graph.add(source, module)
            self.add_dependency(module)

    def save_source_string(self, module_name: str, src: str, is_package: bool = False,
                           dependencies: bool = True) -> None:
        """Save the source of a module."""
        if not isinstance(module_name, str):
            module_name.rsplit(".", maxsplit=1)         # as its parents are looked for: it has none
        self._actions[module_name] = "intern"
        self.dependency_graph.add(module_name)
        self._save_source(module_name, src, is_package)
        if dependencies:
            self._add_imports(module_name, src, is_package)

    def save_source_file(self, module_name: str, file_or_directory: str, dependencies: bool = True
                         ) -> None:
        """Save the source of a module, or those of a folder, from files."""
        path = Path(file_or_directory)
        if not path.is_dir():
            self.save_source_string(module_name, path.read_text(), False, dependencies)
            return
        for file in sorted(path.rglob("*.py")):
            inner = [*file.relative_to(path).with_suffix("").parts]
            is_package = inner[-1] == "__init__"
            name = ".".join([module_name, *(inner[:-1] if is_package else inner)])
            self.save_source_string(name, file.read_text(), is_package, dependencies)

    def save_module(self, module_name: str, dependencies: bool = True) -> None:
        """Save the source of a module that can be imported."""
        if not isinstance(module_name, str):
            raise TypeError("save_module() expects a string input, did you perhaps mean to pass "
                            "`__name__`?")
        found = self._find_source(module_name)
        if found is None:
            raise ValueError(f"no source of the module {module_name}")
        self.save_source_string(module_name, *found, dependencies)

    @staticmethod
    def _path(package: str, resource: str) -> str:
        folder = package.replace(".", "/")
        return f"{folder}/{resource}" if folder else resource

    def _save_source(self, name: str, source: str, is_package: bool) -> None:
        path = name.replace(".", "/")
        self._write(f"{path}/__init__.py" if is_package else f"{path}.py", source)

    def get_unique_id(self) -> str:
        """A number that this package has not used."""
        self._ids += 1
        return str(self._ids - 1)

    # ---- what it needs --------------------------------------------------------------------------

    def add_dependency(self, module_name: str, dependencies: bool = True) -> None:
        """Let the package need a module; the first rule that matches says what becomes of it."""
        if module_name in self._actions or module_name in self._broken:
            return
        self.dependency_graph.add(module_name)
        if module_name == "_mock" or _is_implicit(module_name):
            self._actions[module_name] = "extern"
            return
        rule = next((r for r in self._rules if r.group.matches(module_name)), None)
        if rule is None:
            self._broken[module_name] = _UNMATCHED
            return
        rule.matched = True
        if rule.action == "deny":
            self._broken[module_name] = _DENIED
            self._actions[module_name] = "deny"
            return
        if rule.action == "intern":
            self._intern(module_name, dependencies)
        else:
            self._actions[module_name] = rule.action

    def _intern(self, name: str, dependencies: bool) -> None:
        found = self._find_source(name)
        if found is None:
            self._broken[name] = _NO_SOURCE if _can_import(self.importer, name) else _NOT_FOUND
            return
        self._actions[name] = "intern"
        self._save_source(name, *found)
        if dependencies:
            self._add_imports(name, *found)

    def _find_source(self, name: str) -> tuple[str, bool] | None:
        """The source of a module, and whether it is a package."""
        try:
            module = self.importer.import_module(name)
        except ImportError:
            return None
        if is_mangled(module.__name__):
            return module.__loader__.get_source(name), hasattr(module, "__path__")  # type: ignore
        file = getattr(module, "__file__", None)
        if not file or not file.endswith(".py"):
            return None
        return Path(file).read_text(), hasattr(module, "__path__")

    def _add_imports(self, name: str, source: str, is_package: bool) -> None:
        for needed in imported_modules(name, source, is_package):
            parent, _, _ = needed.rpartition(".")
            if parent and parent in imported_modules(name, source, is_package) \
                    and not _can_import(self.importer, needed):
                continue                        # `from a import b`, where b is no module
            self.dependency_graph.add(name, needed)
            self.add_dependency(needed)

    def _with(self, action: str) -> list[str]:
        return sorted(name for name, found in self._actions.items() if found == action)

    def interned_modules(self) -> list[str]:
        """The modules in the package."""
        return self._with("intern")

    def externed_modules(self) -> list[str]:
        """The modules that it imports from the environment."""
        return self._with("extern")

    def mocked_modules(self) -> list[str]:
        """The modules that are mocked."""
        return self._with("mock")

    def denied_modules(self) -> list[str]:
        """The modules that it may not need, but does."""
        return self._with("deny")

    def dependency_graph_string(self) -> str:
        """Which module needs which, in the language DOT."""
        return self.dependency_graph.dot()

    def all_paths(self, src: str, dst: str) -> str:
        """Why one module needs another, in the language DOT."""
        return self.dependency_graph.dot(self.dependency_graph.between(src, dst))

    def get_rdeps(self, module_name: str) -> list[str]:
        """The modules that need one."""
        if module_name not in self.dependency_graph.edges:
            return []
        return list(self.dependency_graph._turned()[module_name])

    # ---- the end --------------------------------------------------------------------------------

    def __enter__(self) -> PackageExporter:
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        if exc_type is not None:
            self._zip.close()
            return
        self.close()

    def close(self) -> None:
        """Check that all that is needed is provided for, and finish the file."""
        try:
            self._finish()
        finally:
            self._zip.close()

    def _finish(self) -> None:
        if self._broken:
            broken: dict[str, list[str]] = {}
            for name, reason in self._broken.items():
                broken.setdefault(reason, []).append(name)
            raise PackagingError(broken, self.dependency_graph_string() if self.debug else "")
        for rule in self._rules:
            if not rule.allow_empty and not rule.matched:
                raise EmptyMatchError(f"Exporter did not match any modules to {rule.group}, which "
                                      "was marked as allow_empty=False")
        for name, action in list(self._actions.items()):
            for hook in self._hooks.get(action, ()):
                hook(name)
        mocked = self.mocked_modules()
        if mocked:
            self._write("_mock.py", _MOCK)
        for name in mocked:
            self._save_source(name, _MOCKED, any(
                other.startswith(f"{name}.") for other in self._actions))
        self._write(".data/extern_modules", "".join(f"{n}\n" for n in self.externed_modules()))
        self._write(".data/python_version", platform.python_version())
        self._write(".data/version", "6\n")
        self._write("byteorder", sys.byteorder)


class _PackagePickler(CheckpointPickler):
    """Names classes and functions as the importers know them."""

    def __init__(self, file: Any, protocol: int, storages: Storages, importer: Importer):
        super().__init__(file, protocol, storages)
        self._importer = importer

    def name_of(self, obj: Any, name: str) -> tuple[str, str]:
        """The module and name that the importers have an object under."""
        own = None if is_mangled(getattr(obj, "__module__", None) or "") else global_name(obj, name)
        if own is not None:
            return own
        module, found = self._importer.get_name(obj, name)
        return demangle(module), found


def _globals_of(pickled: bytes) -> list[str]:
    """The modules that a pickle names."""
    found: dict[str, None] = {}
    texts: list[str] = []
    for opcode, argument, _ in pickletools.genops(pickled):
        if opcode.name == "GLOBAL":
            found[str(argument).partition(" ")[0]] = None
        elif opcode.name == "STACK_GLOBAL":
            found[texts[-2]] = None
        elif isinstance(argument, str):
            texts.append(argument)
    return list(found)


def _is_implicit(name: str) -> bool:
    """Is a module always there?"""
    head = name.partition(".")[0]
    return head in ("torch", "flambeau") or head in sys.stdlib_module_names


def _can_import(importer: Importer, name: str) -> bool:
    if importer is sys_importer:
        try:
            return importlib.util.find_spec(name) is not None
        except (ImportError, AttributeError, ValueError):
            return False
    try:
        importer.import_module(name)
    except ImportError:
        return False
    return True


__all__ = ["EmptyMatchError", "PackageExporter", "PackagingError"]
