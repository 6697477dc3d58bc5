"""`script`: functions and modules under TorchScript's types, which run as the Python they are."""
from __future__ import annotations

import collections
import functools
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from flambeau import nn
from flambeau._support.c_functions import bound_in_c
from flambeau.core.tensor import Tensor
from flambeau.jit._state import CompilationUnit, _enabled, _missing


class Error(RuntimeError):
    """What TorchScript raises."""


def _as_script(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Call a function whose assertions fail as those of TorchScript do."""
    try:
        return function(*args, **kwargs)
    except AssertionError as error:
        raise Error("The following operation failed in the TorchScript interpreter.\n"
                    f"RuntimeError: AssertionError: {error}") from error


class ScriptWarning(Warning):
    """What TorchScript warns of."""


Attribute = collections.namedtuple("Attribute", ["value", "type"])
Attribute.__doc__ = "A value with the type that TorchScript shall give it."


def warn_deprecated(name: str, advice: str = "Please switch to `torch.compile` or `torch.export`."
                    ) -> None:
    """Warn of the use of `torch.jit.<name>`."""
    warnings.warn(f"`torch.jit.{name}` is deprecated. {advice}", DeprecationWarning, stacklevel=3)


@bound_in_c
class ScriptFunction:
    """A scripted or traced function: the Python function itself, under another type."""

    def __init__(self, function: Callable[..., Any]):
        functools.update_wrapper(self, function)
        self._function = function
        self.name = "_lambda" if function.__name__ == "<lambda>" else function.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _as_script(self._function, args, kwargs)

    @property
    def qualified_name(self) -> str:
        """Its name in TorchScript."""
        return f"__torch__.{self.name}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Not offered: there is no TorchScript to save."""
        _missing("ScriptFunction.save")


class ScriptModule(nn.Module):
    """The class of scripted modules. A subclass marks its methods with `script_method`; they run as
    Python.

    >>> class Twice(ScriptModule):
    ...     @script_method
    ...     def forward(self, x):
    ...         return 2 * x
    >>> Twice()(flambeau.ones(2))
    tensor([2., 2.])
    """

    def __init__(self) -> None:
        super().__init__()

    def define(self, src: str) -> None:
        """Not offered: there is no compiler for source in TorchScript."""
        _missing("ScriptModule.define")


class ModuleAsScript(ScriptModule):
    """What wraps a module: it has the parameters, submodules and methods of the original, and runs
    its Python code."""

    def __init__(self, original: nn.Module, frozen: bool = False):
        super().__init__()
        for name, value in original.__dict__.items():
            self.__dict__[name] = value             # the same parameters, buffers and submodules
        self.__dict__["_original"], self.__dict__["_frozen"] = original, frozen

    @property
    def original_name(self) -> str:
        """The name of the original's class."""
        return type(self._original).__name__

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.__dict__["_original"], name)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return _as_script(self._original.forward, args, kwargs)

    def train(self, mode: bool = True) -> ModuleAsScript:
        """Set the mode, of the original too."""
        self._original.train(mode)
        return super().train(mode)

    def save(self, f: Any, **kwargs: Any) -> None:
        """Not offered: there is no TorchScript to save."""
        _missing("ScriptModule.save", "; save the state_dict instead")


def _refused(name: str) -> Callable[..., Any]:
    """A method of modules that scripted ones, which TorchScript would hold, do not have."""
    def method(self: RecursiveScriptModule, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"{name} is not supported on ScriptModules")
    method.__name__, method.__qualname__ = name, f"RecursiveScriptModule.{name}"
    return method


class RecursiveScriptModule(ModuleAsScript):
    """A scripted module. It cannot be changed as Python's modules can: no hooks, no other types."""

    def __repr__(self) -> str:
        return _describe(self._original, {} if self._frozen else self._modules)

    for _name in ("bfloat16", "compile", "get_buffer", "get_parameter", "get_submodule", "ipu",
                  "mtia", "register_backward_hook", "register_forward_hook",
                  "register_forward_pre_hook", "register_full_backward_hook",
                  "register_full_backward_pre_hook", "register_load_state_dict_post_hook",
                  "register_load_state_dict_pre_hook", "register_state_dict_post_hook",
                  "register_state_dict_pre_hook", "requires_grad_", "set_submodule", "to_empty",
                  "xpu"):
        vars()[_name] = _refused(_name)
    del _name


def _describe(module: nn.Module, children: dict[str, Any]) -> str:
    name = getattr(module, "original_name", type(module).__name__)
    if not children:
        return f"RecursiveScriptModule(original_name={name})"
    lines = [f"({key}): {_describe(child, child._modules)}".replace("\n", "\n  ")
             for key, child in children.items() if child is not None]
    return "\n".join([f"RecursiveScriptModule(\n  original_name={name}",
                      *(f"  {line}" for line in lines), ")"])


class RecursiveScriptClass:
    """An instance of a scripted class. None is made: scripted classes are the classes."""

    def __init__(self, cpp_class: Any):
        _missing("RecursiveScriptClass")


class ConstMap(Mapping[str, Any]):
    """A read-only view of a dict."""

    def __init__(self, const_mapping: Mapping[str, Any]):
        self.const_mapping = const_mapping

    def __getattr__(self, name: str) -> Any:
        return self.const_mapping[name]

    def __getitem__(self, name: str) -> Any:
        return self.const_mapping[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.const_mapping)

    def __len__(self) -> int:
        return len(self.const_mapping)


def as_script(obj: Any) -> Any:
    """A function or module under its type in TorchScript; other things as they are."""
    if isinstance(obj, type):
        if issubclass(obj, nn.Module):
            raise RuntimeError(f"Type '{obj}' cannot be compiled since it inherits from nn.Module, "
                               "pass an instance instead")
        return obj
    if isinstance(obj, (ScriptFunction, ScriptModule)):
        return obj
    if isinstance(obj, nn.Module):
        return RecursiveScriptModule(obj)
    if isinstance(obj, (types.FunctionType, types.MethodType)):
        return ScriptFunction(obj)
    if isinstance(obj, (dict, list)):
        return obj
    raise TypeError(f"{type(obj)} is a built-in class")


def script(obj: Any, optimize: None = None, _frames_up: int = 0, _rcb: Any = None,
           example_inputs: Any = None) -> Any:
    """A function or module as TorchScript would run it: here, as Python."""
    warn_deprecated("script")
    return as_script(obj) if _enabled else obj


def script_method(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a method of a `ScriptModule` subclass for TorchScript; it stays Python."""
    warn_deprecated("script_method")
    return fn


def create_script_dict(obj: dict[Any, Any]) -> dict[Any, Any]:
    """A dict that TorchScript can share: the dict itself."""
    return obj


def create_script_list(obj: list[Any], type_hint: Any = None) -> list[Any]:
    """A list that TorchScript can share: the list itself."""
    return obj


def interface(obj: Any) -> Any:
    """Marks a class as a type of modules."""
    if not isinstance(obj, type):
        raise RuntimeError("interface must be applied to a class")
    obj.__torch_script_interface__ = f"__torch__.{obj.__module__}.{obj.__qualname__}"  # type: ignore
    return obj


def _unwrap_optional(x: Any) -> Any:
    """A value that is not None."""
    if x is None:
        raise AssertionError("Unwrapping null optional")
    return x


def call_prepare_scriptable_func(obj: Any) -> Any:
    """A module after its `__prepare_scriptable__`, if it has one."""
    prepare = getattr(obj, "__prepare_scriptable__", None)
    return obj if prepare is None or isinstance(obj, Tensor) else prepare()


__all__ = ["Attribute", "CompilationUnit", "ConstMap", "Error", "RecursiveScriptClass",
           "RecursiveScriptModule", "ScriptFunction", "ScriptModule", "ScriptWarning",
           "call_prepare_scriptable_func", "create_script_dict", "create_script_list", "interface",
           "script", "script_method"]
