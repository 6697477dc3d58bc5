"""`torch.jit`, without a compiler: scripted and traced programs run as the Python they are.

`script` and `trace` give wrappers that behave as the original does. What needs TorchScript itself,
files of it above all, raises `NotImplementedError`.

>>> import flambeau
>>> @script
... def double(x):
...     return 2 * x
>>> double(flambeau.ones(2))
tensor([2., 2.])
"""
from __future__ import annotations

import collections
import functools
import types
import typing
import warnings
from collections.abc import Callable
from typing import Any

import flambeau
from flambeau import nn
from flambeau.futures import Future


class Error(RuntimeError):
    """What TorchScript raises."""


Attribute = collections.namedtuple("Attribute", ["value", "type"])
Attribute.__doc__ = "A value with the type that TorchScript shall give it."
_tracing = 0


def _deprecated(name: str) -> None:
    warnings.warn(f"`torch.jit.{name}` is deprecated. Please switch to `torch.compile` or "
                  "`torch.export`.", DeprecationWarning, stacklevel=3)


class ScriptFunction:
    """A scripted or traced function: the Python function itself, under another type."""

    def __init__(self, function: Callable[..., Any]):
        functools.update_wrapper(self, function)
        self._function = function
        self.name = function.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Not offered: there is no TorchScript to save."""
        raise NotImplementedError("ScriptFunction.save: flambeau has no TorchScript")


class ScriptModule(nn.Module):
    """The class of scripted modules."""


class RecursiveScriptModule(ScriptModule):
    """A scripted or traced module: it has the parameters, submodules and methods of the original,
    and runs its Python code."""

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
        return self._original.forward(*args, **kwargs)

    def train(self, mode: bool = True) -> RecursiveScriptModule:
        """Set the mode, of the original too."""
        self._original.train(mode)
        return super().train(mode)

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Not offered: there is no TorchScript to save."""
        raise NotImplementedError("ScriptModule.save: flambeau has no TorchScript; save the "
                                  "state_dict instead")

    def __repr__(self) -> str:
        return _describe(self._original, {} if self._frozen else self._modules)


def _describe(module: nn.Module, children: dict[str, Any]) -> str:
    name = getattr(module, "original_name", type(module).__name__)
    if not children:
        return f"RecursiveScriptModule(original_name={name})"
    lines = [f"({key}): {_describe(child, child._modules)}".replace("\n", "\n  ")
             for key, child in children.items() if child is not None]
    return "\n".join([f"RecursiveScriptModule(\n  original_name={name}",
                      *(f"  {line}" for line in lines), ")"])


def _wrap(obj: Any) -> Any:
    if isinstance_(obj, (ScriptFunction, ScriptModule, type)):
        return obj
    if isinstance_(obj, nn.Module):
        return RecursiveScriptModule(obj)
    if isinstance_(obj, (types.FunctionType, types.MethodType)):
        return ScriptFunction(obj)
    if isinstance_(obj, (dict, list)):
        return obj
    raise TypeError(f"{type(obj)} is a built-in class")


isinstance_ = isinstance


def script(obj: Any, optimize: None = None, _frames_up: int = 0, _rcb: Any = None,
           example_inputs: Any = None) -> Any:
    """A function or module as TorchScript would run it: here, as Python."""
    _deprecated("script")
    return _wrap(obj)


def trace(func: Any, example_inputs: Any = None, optimize: Any = None, check_trace: bool = True,
          check_inputs: Any = None, check_tolerance: float = 1e-5, strict: bool = True,
          _force_outplace: bool = False, _module_class: Any = None, _compilation_unit: Any = None,
          example_kwarg_inputs: dict[str, Any] | None = None, _store_inputs: bool = True) -> Any:
    """A function or module, called once with `example_inputs` so that errors show now.

    PyTorch would write down the ops of that call; here later calls run the Python again, so that
    branches on values are taken anew.
    """
    _deprecated("trace")
    if example_inputs is None and example_kwarg_inputs is None:
        raise RuntimeError("example_kwarg_inputs should be a dict")
    if not callable(func):
        raise RuntimeError("Could not get name of python class object")
    args = (example_inputs,) if isinstance_(example_inputs, (flambeau.Tensor, dict)) \
        else tuple(example_inputs or ())
    global _tracing
    _tracing += 1
    try:
        func(*args, **(example_kwarg_inputs or {}))
    finally:
        _tracing -= 1
    return _wrap(func)


def trace_module(mod: nn.Module, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
    """A module, each method of which that `inputs` names is called once with those inputs."""
    if not isinstance_(mod, nn.Module):
        raise AttributeError("expected torch.nn.Module as the first argument")
    if not isinstance_(inputs, dict):
        raise AttributeError("expected a dictionary of (method_name, input) pairs")
    for name, example in inputs.items():
        getattr(mod, name)(*(example if isinstance_(example, tuple) else (example,)))
    return _wrap(mod)


def freeze(mod: Any, preserved_attrs: list[str] | None = None, optimize_numerics: bool = True
           ) -> RecursiveScriptModule:
    """A scripted module in eval mode whose parameters count as constants."""
    if not isinstance_(mod, ScriptModule):
        raise RuntimeError("Freezing expects a ScriptModule as input. Please use torch.jit.script "
                           "or torch.jit.trace to script your 'nn.Module'.")
    if mod.training:
        raise RuntimeError("Freezing is currently only implemented for modules in eval mode. "
                           "Please call .eval() on your module before freezing.")
    return RecursiveScriptModule(mod._original, frozen=True)


def optimize_for_inference(mod: Any, other_methods: list[str] | None = None) -> Any:
    """`freeze`: there is nothing else to optimise."""
    return mod if getattr(mod, "_frozen", False) else freeze(mod.eval())


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Marks a method that TorchScript shall leave to Python."""
    return drop if callable(drop) else lambda function: function


def _overload(function: Any) -> Any:
    """Marks one of several signatures of a function: Python has no use for it."""
    return function


_overload_method = _overload


def unused(fn: Any) -> Any:
    """Marks a method that TorchScript shall leave out."""
    return fn


def export(fn: Any) -> Any:
    """Marks a method that TorchScript shall compile although `forward` does not call it."""
    return fn


def interface(obj: Any) -> Any:
    """Marks a class as a type of modules."""
    return obj


def script_if_tracing(fn: Any) -> Any:
    """A function that TorchScript compiles when tracing comes by."""
    return fn


def is_scripting() -> bool:
    """False: the code that asks runs as Python."""
    return False


def is_tracing() -> bool:
    """Is the example call of `trace` running?"""
    return _tracing > 0


def annotate(the_type: Any, the_value: Any) -> Any:
    """`the_value`, whose type TorchScript shall take to be `the_type`."""
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Is this an instance of a type, which may say what containers hold?

    >>> isinstance([1, 2], list[int]), isinstance([1.5], list[int])
    (True, False)
    """
    if isinstance_(target_type, tuple):
        return any(isinstance(obj, t) for t in target_type)
    origin, args = typing.get_origin(target_type), typing.get_args(target_type)
    if origin is None:
        return obj is None if target_type is None else isinstance_(obj, target_type)
    if origin in (typing.Union, types.UnionType):
        return any(isinstance(obj, t) for t in args)
    if not isinstance_(obj, origin):
        return False
    if origin is dict:
        return all(isinstance(k, args[0]) and isinstance(v, args[1]) for k, v in obj.items())
    if origin is tuple and args[-1:] != (Ellipsis,):
        return len(obj) == len(args) and all(map(isinstance, obj, args))
    return all(isinstance(value, args[0]) for value in obj)


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future:
    """A future of a call, which is done at once."""
    future: Future = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Future) -> Any:
    """The value of a future."""
    return future.wait()


_fork, _wait = fork, wait


def save(m: Any, f: Any, _extra_files: Any = None) -> None:
    """Not offered: there is no TorchScript to save."""
    raise NotImplementedError("torch.jit.save: flambeau has no TorchScript; save the state_dict "
                              "with torch.save instead")


def load(f: Any, map_location: Any = None, _extra_files: Any = None, _restore_shapes: bool = False
         ) -> Any:
    """Not offered: there is no TorchScript to run."""
    raise NotImplementedError("torch.jit.load: flambeau does not run TorchScript")


def export_opnames(m: Any) -> list[str]:
    """Not offered: there is no TorchScript to look at."""
    raise NotImplementedError("torch.jit.export_opnames: flambeau has no TorchScript")


class CompilationUnit:
    """TorchScript source. Not offered: there is no compiler."""

    def __init__(self, *args: Any, **kwargs: Any):
        raise NotImplementedError("torch.jit.CompilationUnit: flambeau has no TorchScript")


class strict_fusion:
    """A context in which everything should be fused; nothing ever is."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: Any) -> None:
        pass


_settings: dict[str, Any] = {"onednn": False, "strategy": [("STATIC", 2), ("DYNAMIC", 10)]}


def enable_onednn_fusion(enabled: bool) -> None:
    """Remembered; nothing is fused."""
    _settings["onednn"] = enabled


def onednn_fusion_enabled() -> bool:
    """What `enable_onednn_fusion` was told."""
    return _settings["onednn"]


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Remembered; gives what it was before."""
    before, _settings["strategy"] = _settings["strategy"], strategy
    return before


__all__ = ["Attribute", "CompilationUnit", "Error", "Future", "ScriptFunction", "ScriptModule",
           "annotate", "enable_onednn_fusion", "export", "export_opnames", "fork", "freeze",
           "ignore", "interface", "is_scripting", "is_tracing", "isinstance", "load",
           "onednn_fusion_enabled", "optimize_for_inference", "save", "script",
           "script_if_tracing", "set_fusion_strategy", "strict_fusion", "trace", "trace_module",
           "unused", "wait"]
