"""Errors of TorchScript's parser, and what it reads of a function's signature."""
from __future__ import annotations

import ast
import inspect
from typing import Any

_reserved_prefix = "__jit"
_reserved_names = {"print"}


class FrontendError(Exception):
    """Source that TorchScript does not take."""

    def __init__(self, source_range: Any, msg: str):
        super().__init__(msg if source_range is None else f"{msg}:\n{source_range}")
        self.source_range, self.msg = source_range, msg


class NotSupportedError(FrontendError):
    """Python that TorchScript does not know."""


class UnsupportedNodeError(NotSupportedError):
    """A statement or expression that TorchScript does not know."""

    def __init__(self, ctx: Any, offending_node: ast.AST, reason: str = ""):
        kind = type(offending_node).__name__
        super().__init__(None, f"{reason + ': ' if reason else ''}{kind} aren't supported")


class FrontendTypeError(FrontendError):
    """A type annotation that TorchScript does not know."""


def is_reserved_name(name: str) -> bool:
    """May scripted code not use this name?"""
    return name.startswith(_reserved_prefix) or name in _reserved_names


def get_default_args(fn: Any) -> dict[str, Any]:
    """The defaults of a function's parameters, by name.

    >>> def scale(x, by=2): return x * by
    >>> get_default_args(scale)
    {'by': 2}
    """
    if fn is None:
        return {}
    return {name: p.default for name, p in inspect.signature(fn).parameters.items()
            if p.default is not p.empty}


def get_default_args_for_class(cls: type) -> dict[str, dict[str, Any]]:
    """The defaults of the parameters of a class's methods."""
    return {name: get_default_args(getattr(cls, name)) for name, _ in inspect.getmembers(
        cls, predicate=lambda m: inspect.isfunction(m) or inspect.ismethod(m))}


def _missing(name: str) -> Any:
    raise NotImplementedError(f"torch.jit.frontend.{name}: flambeau has no TorchScript")


def get_jit_def(fn: Any, def_name: str, self_name: str | None = None, is_classmethod: bool = False
                ) -> Any:
    """Not offered: there is no TorchScript into which a function could be read."""
    return _missing("get_jit_def")


def get_jit_class_def(cls: type, self_name: str) -> Any:
    """Not offered: there is no TorchScript into which a class could be read."""
    return _missing("get_jit_class_def")


__all__ = ["FrontendError", "FrontendTypeError", "NotSupportedError", "UnsupportedNodeError",
           "get_default_args", "get_default_args_for_class", "get_jit_class_def", "get_jit_def",
           "is_reserved_name"]
