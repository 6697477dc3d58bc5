"""Modules of settings: what a module assigns becomes a setting that knows its default.

    from torch.utils._config_module import Config, install_config_module

    cache_size = 64
    verbose: bool = Config(default=False, env_name_default="MY_VERBOSE")
    install_config_module(sys.modules[__name__])

After this, names that are not settings are errors, and `patch` gives settings other values for a
block or a function. Settings of classes in the module have names such as `triton.unique`.
"""
from __future__ import annotations

import contextlib
import copy
import hashlib
import inspect
import io
import os
import pickle
import tokenize
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any

_UNSET = object()
_KINDS = (int, float, bool, type(None), str, list, set, tuple, dict)
_MARKER = "@compile_ignored"


@dataclass(kw_only=True)
class _Config:
    """A setting as a module declares it; see `Config`."""

    default: Any = _UNSET
    justknob: str | None = None
    env_name_default: Any = None
    env_name_force: Any = None
    value_type: type | None = None
    alias: str | None = None
    deprecated: bool = False
    deprecation_message: str | None = None

    def __post_init__(self) -> None:
        self.env_name_default = _names(self.env_name_default)
        self.env_name_force = _names(self.env_name_force)
        if self.alias is not None and (
                self.default is not _UNSET or self.justknob is not None
                or self.env_name_default is not None or self.env_name_force is not None):
            raise AssertionError("if alias is set, none of {default, justknob, env_name_default "
                                 "and env_name_force} can be set")


def _names(value: Any) -> list[str] | None:
    if value is None or isinstance(value, list):
        return value
    if isinstance(value, str):
        return [value]
    raise AssertionError(f"val is not a list, got {type(value)}")


def Config(default: Any = _UNSET, justknob: str | None = None,
           env_name_default: Any = None, env_name_force: Any = None,
           value_type: type | None = None, alias: str | None = None, deprecated: bool = False,
           deprecation_message: str | None = None) -> Any:
    """A setting with more than a default.

    Variables of the environment named by `env_name_default` are a default, those named by
    `env_name_force` come before all else; `alias` is the setting, of another module, whose value
    this has. `deprecated` settings warn where they are used.
    """
    return _Config(default=default, justknob=justknob, env_name_default=env_name_default,
                   env_name_force=env_name_force, value_type=value_type, alias=alias,
                   deprecated=deprecated, deprecation_message=deprecation_message)


def _read_env_variable(name: str) -> bool | str | None:
    """What the environment says: "0" and "1" are truths."""
    value = os.environ.get(name)
    return {"1": True, "0": False}.get(value, value) if value is not None else None


def get_tristate_env(name: str, default: Any = None) -> bool | None:
    """True, False, or the default where the variable is neither "1" nor "0"."""
    return {"1": True, "0": False}.get(os.environ.get(name, ""), default)


class _ConfigEntry:
    """A setting, and what it was set to."""

    def __init__(self, config: _Config, name: str) -> None:
        self.default, self.alias, self.justknob = config.default, config.alias, config.justknob
        self.value_type = config.value_type or type(config.default)
        self.deprecated = config.deprecated
        self.deprecation_message = config.deprecation_message
        self.user_override: Any = _UNSET
        self.hide = self._deprecation_warned = False
        self.env_value_default = self._of_environment(config.env_name_default)
        self.env_value_force = self._of_environment(config.env_name_force)

    def _of_environment(self, names: list[str] | None) -> Any:
        if names is None:
            return _UNSET
        if self.default is not None and type(self.default) not in (bool, str):
            raise AssertionError("envvar configs only support (optional) booleans or strings, "
                                 f"{type(self.default)} is neither")
        for name in names:
            found = _read_env_variable(name)
            if found is not None:
                return found
        return _UNSET

    @property
    def value(self) -> Any:
        for found in (self.env_value_force, self.user_override, self.env_value_default):
            if found is not _UNSET:
                return found
        if isinstance(self.default, (list, set, dict)):     # which programs change
            self.user_override = copy.deepcopy(self.default)
            return self.user_override
        return self.default


def install_config_module(module: ModuleType) -> None:
    """Turn a module of assignments into a `ConfigModule`."""
    settings: dict[str, _ConfigEntry] = {}

    class ConfigModuleInstance(ConfigModule):
        _bypass_keys = {"_is_dirty", "_hash_digest", "__annotations__"}

    def visit(source: Any, target: Any, prefix: str) -> None:
        types = getattr(source, "__annotations__", {})
        for key, value in list(vars(source).items()):
            if key.startswith("__") or isinstance(value, (ModuleType, FunctionType)) or (
                    hasattr(value, "__module__") and value.__module__ == "typing"
                    ) or (isinstance(value, type) and issubclass(value, _Config)):
                continue
            name = prefix + key
            if isinstance(value, _Config):
                if types.get(key) is not None and value.value_type is None:
                    value.value_type = types[key]
                settings[name] = _ConfigEntry(value, name)
            elif isinstance(value, _KINDS):
                settings[name] = _ConfigEntry(
                    _Config(default=value, value_type=types.get(key)), name)
            elif isinstance(value, type):
                if value.__module__ != module.__name__:
                    raise AssertionError(f"subconfig class {value} must be defined in module "
                                         f"{module.__name__}")
                proxy = SubConfigProxy(module, name + ".")
                visit(value, proxy, name + ".")
                if target is module:
                    setattr(target, key, proxy)
                else:
                    vars(target)[key] = proxy
                continue
            else:
                raise AssertionError(f"Unhandled config {key}={value} ({type(value)})")
            if target is module:
                delattr(module, key)

    ignored = get_assignments_with_compile_ignored_comments(module)
    visit(module, module, "")
    vars(module).update(_config=settings, _compile_ignored_keys=ignored, _is_dirty=True,
                        _hash_digest=None)
    module.__class__ = ConfigModuleInstance


def get_assignments_with_compile_ignored_comments(module: ModuleType) -> set[str]:
    """The names that are assigned to right after a comment that says `@compile_ignored`."""
    try:
        source = inspect.getsource(module)
    except OSError:
        return set()
    found: set[str] = set()
    previous, marked = "", False
    for token in tokenize.tokenize(io.BytesIO(source.encode()).readline):
        if token.type == tokenize.COMMENT:
            marked = marked or _MARKER in token.string
        elif token.type == tokenize.NAME:
            previous = previous or token.string
        elif token.type == tokenize.OP and token.string == "=" and marked:
            found.add(previous)
            marked = False
        elif token.type in (tokenize.NEWLINE, tokenize.NL):
            previous = ""
    if marked:
        raise AssertionError(f"unconsumed {_MARKER}")
    return found


class ConfigModule(ModuleType):
    """A module of settings."""

    _config: dict[str, _ConfigEntry]
    _bypass_keys: set[str]
    _compile_ignored_keys: set[str]
    _is_dirty: bool
    _hash_digest: bytes | None

    def __init__(self) -> None:
        raise NotImplementedError(
            f"use {__name__}.install_config_module(sys.modules[__name__])")

    def _missing(self, name: str) -> AttributeError:
        return AttributeError(f"{self.__name__}.{name} does not exist")

    def _warn_if_deprecated(self, name: str, entry: _ConfigEntry) -> None:
        if entry.deprecated and not entry._deprecation_warned:
            entry._deprecation_warned = True
            said = f"{self.__name__}.{name} is deprecated"
            said += f" and {entry.deprecation_message}" if entry.deprecation_message else ""
            warnings.warn(said + ". It will be removed in a future version of PyTorch.",
                          FutureWarning, stacklevel=3)

    @staticmethod
    def _aliased(entry: _ConfigEntry) -> tuple[Any, str]:
        import importlib
        assert entry.alias is not None
        module, _, name = entry.alias.rpartition(".")
        return importlib.import_module(module), name

    def __getattr__(self, name: str) -> Any:
        entry = vars(self).get("_config", {}).get(name)
        if entry is None or entry.hide:
            raise self._missing(name)
        self._warn_if_deprecated(name, entry)
        return getattr(*self._aliased(entry)) if entry.alias is not None else entry.value

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._bypass_keys:
            super().__setattr__(name, value)
            return
        entry = self._config.get(name)
        if entry is None:
            raise self._missing(name)
        self._warn_if_deprecated(name, entry)
        if entry.alias is not None:
            setattr(*self._aliased(entry), value)
            return
        entry.user_override, entry.hide = value, False
        self._is_dirty = True

    def __delattr__(self, name: str) -> None:
        if name not in self._config:
            raise self._missing(name)
        self._config[name].user_override, self._config[name].hide = _UNSET, True
        self._is_dirty = True

    def _is_default(self, name: str) -> bool:
        """Was the setting neither set, nor given by the environment?"""
        entry = self._config[name]
        unset = entry.user_override is _UNSET or (
            isinstance(entry.default, (list, set, dict)) and entry.user_override == entry.default)
        return unset and all(value is _UNSET or value == entry.default
                             for value in (entry.env_value_default, entry.env_value_force))

    def _get_dict(self, ignored_keys: list[str] | None = None,
                  ignored_prefixes: list[str] | None = None, skip_default: bool = False,
                  readonly_values: bool = False) -> dict[str, Any]:
        """The settings by name, but for those left out, and aliases."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            return {
                name: entry.value if readonly_values else copy.deepcopy(entry.value)
                for name, entry in self._config.items()
                if not (entry.hide or entry.alias is not None or name in (ignored_keys or ())
                        or name.startswith(tuple(ignored_prefixes or ()))
                        or (skip_default and self._is_default(name)))}

    def get_type(self, config_name: str) -> type:
        """The type of a setting."""
        return self._config[config_name].value_type

    def get_config_copy(self) -> dict[str, Any]:
        """The settings by name."""
        return self._get_dict()

    def get_serializable_config_copy(self) -> dict[str, Any]:
        """The settings by name, but for those that `_save_config_ignore` names."""
        return self._get_dict(ignored_keys=getattr(self, "_save_config_ignore", []))

    def save_config(self) -> bytes:
        """`get_serializable_config_copy`, pickled."""
        return pickle.dumps(self.get_serializable_config_copy(), protocol=2)

    def save_config_portable(self, *, ignore_private_configs: bool = True,
                             readonly_values: bool = False) -> dict[str, Any]:
        """The settings that matter on any machine."""
        prefixes = ["_"] if ignore_private_configs else []
        prefixes += getattr(self, "_cache_config_ignore_prefix", [])
        return self._get_dict(ignored_prefixes=prefixes, readonly_values=readonly_values)

    def codegen_config(self) -> str:
        """The statements that set what is not as it was."""
        ignored = getattr(self, "_save_config_ignore", [])
        return "\n".join([f"{self.__name__}.{name} = {value!r}" for name, value in
                          self._get_dict(skip_default=True).items() if name not in ignored])

    def get_hash(self) -> bytes:
        """A digest of the settings that change what is compiled."""
        if self._is_dirty or self._hash_digest is None:
            kept = self._get_dict(ignored_keys=list(self._compile_ignored_keys))
            shown = repr(sorted(kept.items(), key=lambda item: item[0]))
            self._hash_digest = hashlib.md5(shown.encode(), usedforsecurity=False).digest()
            self._is_dirty = False
        return self._hash_digest

    def to_dict(self) -> dict[str, Any]:
        """`get_config_copy`, by an older name."""
        return self._old("to_dict")

    def shallow_copy_dict(self) -> dict[str, Any]:
        """`get_config_copy`, by an older name."""
        return self._old("shallow_copy_dict")

    def _old(self, name: str) -> dict[str, Any]:
        warnings.warn(f"`config.{name}()` has been deprecated. It no longer changes the underlying "
                      "config. use `config.get_config_copy()` instead if you just want a copy of "
                      "the config, or config.load_config if you need mutable access",
                      FutureWarning, stacklevel=3)
        return self.get_config_copy()

    def load_config(self, maybe_pickled_config: bytes | dict[str, Any]) -> None:
        """Set the settings that are given."""
        given = maybe_pickled_config if isinstance(maybe_pickled_config, dict) \
            else pickle.loads(maybe_pickled_config)
        for name, value in given.items():
            if name in self._config:
                setattr(self, name, value)
            else:
                warnings.warn(f"key {name} with value {value} is not understood by this config",
                              stacklevel=2)

    def patch(self, arg1: Any = None, arg2: Any = None, **kwargs: Any) -> ContextDecorator:
        """Other values for a block or a function: `patch("a", 1)`, `patch({"a": 1})`,
        `patch(a=1)`."""
        return _Patch(self, _changes(arg1, arg2, kwargs))

    def _make_closure_patcher(self, **changes: Any) -> Callable[[], Callable[[], None]]:
        """A function that sets the settings, and gives one that sets them back."""
        def change() -> Callable[[], None]:
            before = {name: self._config[name].value for name in changes}
            for name, value in changes.items():
                self._config[name].user_override = value

            def revert() -> None:
                for name, value in before.items():
                    self._config[name].user_override = value
            return revert
        return change


def _changes(arg1: Any, arg2: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    if arg1 is None:
        return kwargs
    if kwargs:
        raise AssertionError("cannot pass both positional and keyword arguments to patch")
    if arg2 is not None:
        if not isinstance(arg1, str):
            raise AssertionError("first argument must be a string when passing 2 positional args "
                                 "to patch")
        return {arg1: arg2}
    if not isinstance(arg1, dict):
        raise AssertionError("first argument must be a dict when passing a single positional arg "
                             "to patch")
    return arg1


class ContextDecorator(contextlib.ContextDecorator):
    """A block, or what decorates functions and test cases with it."""

    def __enter__(self) -> None:
        raise NotImplementedError

    def __exit__(self, *error: object) -> None:
        raise NotImplementedError

    def __call__(self, func: Any) -> Any:
        if not isinstance(func, type):
            return super().__call__(func)
        block = self

        class _Within(func):        # a test case
            @classmethod
            def setUpClass(cls) -> None:
                block.__enter__()
                try:
                    super().setUpClass()
                except Exception:
                    block.__exit__(None, None, None)
                    raise

            @classmethod
            def tearDownClass(cls) -> None:
                try:
                    super().tearDownClass()
                finally:
                    block.__exit__(None, None, None)
        _Within.__name__, _Within.__qualname__ = func.__name__, func.__qualname__
        _Within.__module__ = func.__module__
        return _Within


class _Patch(ContextDecorator):
    def __init__(self, config: ConfigModule, changes: dict[str, Any]) -> None:
        self.config, self.changes = config, changes
        self.before: list[dict[str, Any]] = []

    def __enter__(self) -> None:
        self.before.append({name: getattr(self.config, name) for name in self.changes})
        for name, value in self.changes.items():
            setattr(self.config, name, value)

    def __exit__(self, *error: object) -> None:
        for name, value in self.before.pop().items():
            setattr(self.config, name, value)


class SubConfigProxy:
    """The settings of a class in a module of settings."""

    def __init__(self, config: object, prefix: str) -> None:
        super().__setattr__("_config", config)
        super().__setattr__("_prefix", prefix)

    def __getattr__(self, name: str) -> Any:
        return self._config.__getattr__(self._prefix + name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._config.__setattr__(self._prefix + name, value)

    def __delattr__(self, name: str) -> None:
        self._config.__delattr__(self._prefix + name)


