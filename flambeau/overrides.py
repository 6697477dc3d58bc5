"""Overriding functions by type (`__torch_function__`) and by mode.

A class with a `__torch_function__` classmethod takes over every public function that is called with
one of its instances; a `TorchFunctionMode` takes over all while it is entered.

>>> import flambeau
>>> class Log(TorchFunctionMode):
...     def __torch_function__(self, func, types, args=(), kwargs=None):
...         print(func.__name__)
...         return func(*args, **(kwargs or {}))
>>> with Log():
...     y = flambeau.exp(flambeau.zeros(1))
zeros
exp
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from flambeau.core.op import public, table
from flambeau.core.overrides import handle_torch_function, has_torch_function, overriding
from flambeau.core.tensor import Tensor
from flambeau.transforms.function_modes import TorchFunctionMode, is_tensor_like


def _get_overloaded_args(relevant_args: Any, get_type_fn: Any = None) -> list[Any]:
    """The arguments whose types override functions, one a type, subclasses first."""
    return overriding(relevant_args)


def has_torch_function_unary(tensor: Any) -> bool:
    """`has_torch_function` for one argument."""
    return has_torch_function((tensor,))


def has_torch_function_variadic(*relevant: Any) -> bool:
    """`has_torch_function` for arguments that are given one by one."""
    return has_torch_function(relevant)


def wrap_torch_function(dispatcher: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a function, so that it can be overridden like a public one; `dispatcher` is called
    with its arguments and gives those that may override."""
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)
        return wrapped
    return decorate


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Is this a method of Tensor, or the getter or setter of a property?"""
    return func in _methods() or getattr(func, "__name__", None) in ("__get__", "__set__")


@functools.cache
def _methods() -> frozenset[Any]:
    found = set()
    for name in dir(Tensor):
        value = getattr(Tensor, name)
        if callable(value):
            try:
                found.add(value)
            except TypeError:
                continue
    return frozenset(found)


@functools.cache
def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """All functions that can be overridden, by the namespace that holds them."""
    import flambeau
    found: dict[Any, list[Callable[..., Any]]] = {}
    for namespace, functions in public.items():
        place = flambeau
        for part in namespace.split(".")[0 if namespace != "torch" else 1:]:
            place = getattr(place, part)
        found[place] = list(functions.values())
    found[Tensor] = [m for m in _methods() if hasattr(m, "__name__")]
    return found


def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """For each function that can be overridden, one of the same name that does nothing."""
    def dummy(*args: Any, **kwargs: Any) -> Any:
        return -1
    return {op.function: dummy for op in table.values() if op.function is not None}


@functools.cache
def get_ignored_functions() -> set[Callable[..., Any]]:
    """The public functions that no type overrides: they take no tensors."""
    import flambeau
    names = ("typename", "is_tensor", "is_storage", "set_default_dtype", "get_default_dtype",
             "manual_seed", "initial_seed", "seed", "save", "load", "set_printoptions",
             "get_rng_state", "set_rng_state", "is_grad_enabled", "no_grad", "enable_grad")
    return {getattr(flambeau, n) for n in names if hasattr(flambeau, n)}


def resolve_name(f: Any) -> str | None:
    """The full public name of a function."""
    name = getattr(f, "__name__", None)
    module = getattr(f, "__module__", None)
    if f in _methods():
        return f"torch.Tensor.{name}"
    return None if name is None else f"{module}.{name}" if module else name


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def enable_reentrant_dispatch() -> Any:
    """A context in which ops called from `__torch_dispatch__` are dispatched again."""
    raise NotImplementedError("enable_reentrant_dispatch")


__all__ = ["BaseTorchFunctionMode", "TorchFunctionMode", "get_ignored_functions",
           "get_overridable_functions", "get_testing_overrides", "handle_torch_function",
           "has_torch_function", "is_tensor_like", "is_tensor_method_or_property", "resolve_name",
           "wrap_torch_function"]
