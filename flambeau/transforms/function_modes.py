"""The public side of `__torch_function__`: modes, ways around it, and the default of subclasses."""
from __future__ import annotations

import warnings
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType
from typing import Any

import flambeau
from flambeau._support.scopes import Scope, within
from flambeau.core import modes
from flambeau.core.calling.overrides import subclasses_enabled
from flambeau.core.return_types import ReturnType
from flambeau.core.tensor import Tensor, tensor_types
from flambeau.transforms import watched_members


class DisableTorchFunctionSubclass(Scope):
    """Inside, subclasses of Tensor do not override functions."""

    _gives: Any = None
    _changes: Any = ((subclasses_enabled, False),)


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """Inside, neither subclasses nor modes override functions."""

    _changes = ((subclasses_enabled, False), (modes.function_modes, ()))


def default_torch_function(cls: type, function: Any, types: Any, args: tuple[Any, ...],
                           kwargs: dict[str, Any]) -> Any:
    """What a subclass does that does not say otherwise: run it, give results the subclass."""
    if not all(issubclass(cls, t) for t in types):
        return NotImplemented
    if _is_foreign(function):
        function = _find_counterpart(function)
    result = within(subclasses_enabled, False, function, *args, **kwargs)
    if function in _KEEPS_TYPE:
        return result
    return as_subclass(result, cls)


def _is_foreign(function: Any) -> bool:
    """Is it PyTorch's own, of C or of Python?"""
    if isinstance(function, FunctionType):
        return function.__globals__.get("__name__", "").startswith("torch.")
    return isinstance(function, BuiltinFunctionType | MethodDescriptorType)


def _find_counterpart(function: Any) -> Any:
    """The function of that name here, for one of PyTorch that was given a tensor of ours: to call
    that would lead to the same question again."""
    found: Any = Tensor if isinstance(function, MethodDescriptorType) else flambeau
    path = [] if found is Tensor else (function.__module__ or "torch").split(".")[1:]
    for part in (*path, function.__name__):
        found = getattr(found, part, None)
    if found is None:
        raise NotImplementedError(f"flambeau has no {function.__name__}")
    return found


_KEEPS_TYPE: set[Any] = set()


def as_subclass(result: Any, cls: type) -> Any:
    """Tensors in `result`, also inside tuples and lists, as instances of `cls`."""
    if type(result) in tensor_types:
        if isinstance(result, cls) or hasattr(result, "_level"):    # one slice stays what it is
            return result
        return result.as_subclass(cls)
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return type(result)(*[as_subclass(r, cls) for r in result])
    if type(result) in (tuple, list) or isinstance(result, ReturnType):
        return type(result)([as_subclass(r, cls) for r in result])
    return result


class TorchFunctionMode(Scope):
    """While entered, takes over every public function: `__torch_function__(func, types, args,
    kwargs)` on the instance. Modes nest; inside its own method a mode is set aside."""

    sees_members = True                 # also properties and methods that are no ops

    def __init__(self) -> None:
        super().__init__()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """The old way to make a mode that is then entered."""
        warnings.warn("`Mode.push()` is no longer necessary and can be replaced with just "
                      "`with Mode()`", stacklevel=2)
        return cls(*args, **kwargs)

    def _changes(self) -> Any:
        changes: Any = ((modes.function_modes, (*modes.function_modes.get(), self)),
                        (modes.interceptors, self))
        if self.sees_members:
            watched_members.watch()
            changes = (*changes, (watched_members.watchers, self))
        return changes

    def _has_left(self) -> None:
        if self.sees_members:
            watched_members.restore_members()


def is_tensor_like(inp: Any) -> bool:
    """Is this a Tensor, or of a type that overrides functions?"""
    return isinstance(inp, Tensor) or hasattr(type(inp), "__torch_function__")


