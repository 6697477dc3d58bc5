"""Helpers around tensors and modules: data loading, checkpointing, hooks, pictures of the graph."""
from __future__ import annotations

import importlib
import os
import weakref
from typing import Any

from flambeau._support.lazy.modules import parts
from flambeau.utils import hooks

_LAZY = ("_contextlib", "_device", "_foreach_utils", "_mode_utils", "_ordered_set",
         "_python_dispatch", "_pytree", "_stats", "_traceback", "backcompat", "benchmark",
         "checkpoint", "collect_env", "cpp_backtrace", "cpp_extension", "data", "deterministic",
         "dlpack", "file_baton", "flop_counter", "graph", "hooks", "mkldnn", "mobile_optimizer",
         "model_zoo", "module_tracker", "serialization", "tensorboard", "throughput_benchmark",
         "viz", "weak")
_FROM = {"ThroughputBenchmark": "throughput_benchmark", "get_cpp_backtrace": "cpp_backtrace"}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return importlib.import_module(f"flambeau.utils.{name}")
    if name in _FROM:
        return getattr(importlib.import_module(f"flambeau.utils.{_FROM[name]}"), name)
    if name == "cmake_prefix_path":
        return os.path.join(os.path.dirname(os.path.dirname(__file__)), "share", "cmake")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def swap_tensors(t1: Any, t2: Any) -> None:
    """Exchange all that two tensors are (memory, gradient, history, class, attributes), so that
    whoever holds the one finds the other. A graph that ends in a leaf keeps to the object.

    >>> a, b = flambeau.ones(2), flambeau.zeros(3)
    >>> flambeau.utils.swap_tensors(a, b)
    >>> a, b
    (tensor([0., 0., 0.]), tensor([1., 1.]))
    """
    for name, tensor in (("t1", t1), ("t2", t2)):
        if weakref.getweakrefs(tensor):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    slots = [_slots(type(t)) for t in (t1, t2)]
    if slots[0] != slots[1]:
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
    for name in slots[0]:
        values = [getattr(t, name, _UNSET) for t in (t2, t1)]
        for tensor, value in zip((t1, t2), values):
            if value is not _UNSET:
                setattr(tensor, name, value)
            elif hasattr(tensor, name):
                delattr(tensor, name)
    t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    t1.__dict__, t2.__dict__ = t2.__dict__, t1.__dict__


_UNSET = object()


def _slots(cls: type) -> set[str]:
    """The names of the slots of a class."""
    return {name for base in cls.__mro__ for name in getattr(base, "__slots__", ())
            if name not in ("__dict__", "__weakref__")}


def set_module(obj: Any, mod: str) -> None:
    """Say that a function or class belongs to this module."""
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod


def rename_privateuse1_backend(backend_name: str) -> None:
    """Not offered: there are no other devices to name."""
    raise NotImplementedError("rename_privateuse1_backend: flambeau has no other backends")


def generate_methods_for_privateuse1_backend(
        for_tensor: bool = True, for_module: bool = True, for_packed_sequence: bool = True,
        for_storage: bool = False, unsupported_dtype: list[Any] | None = None) -> None:
    """Not offered: there are no other devices to have methods for."""
    raise NotImplementedError("generate_methods_for_privateuse1_backend: flambeau has no other "
                              "backends")


__all__ = ["ThroughputBenchmark", "cmake_prefix_path", "generate_methods_for_privateuse1_backend",
           "get_cpp_backtrace", "hooks", "rename_privateuse1_backend", "set_module",
           "swap_tensors"]
parts(__name__, {"backend_registration": "rename_privateuse1_backend "
                                         "generate_methods_for_privateuse1_backend"})
