"""The names of PyTorch's tracer that programs mention. There is none: see `flambeau.compiler`."""
from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from flambeau._lazy import lazy_package
from flambeau.compiler import (
    allow_in_graph,
    assume_constant_result,
    disable,
    is_compiling,
    list_backends,
    reset,
)
from flambeau.compiler._module import OptimizedModule

__all__ = ["OptimizedModule", "allow_in_graph", "assume_constant_result", "disable",
           "is_compiling", "list_backends", "mark_dynamic", "mark_static", "mark_static_address",
           "maybe_mark_dynamic", "reset"]


class _Config(SimpleNamespace):
    """Switches of a tracer: they can be set, and have no effect."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return None


config = _Config()


def mark_dynamic(t: Any, index: Any, **bounds: Any) -> None:
    """Sizes are never fixed in advance: nothing to do."""


def mark_static_address(t: Any, guard: bool = False) -> None:
    """Tensors stay where they are: nothing to do."""


maybe_mark_dynamic = mark_static = mark_dynamic
__getattr__ = lazy_package(__name__)
