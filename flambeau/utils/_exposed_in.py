"""Where a function is shown to be."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def exposed_in(module: str) -> Callable[[F], F]:
    """A decorator: the function says that it belongs to this module."""
    def decorate(fn: F) -> F:
        fn.__module__ = module
        return fn
    return decorate
