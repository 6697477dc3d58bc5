"""Functions that PyTorch has in C, and that count their arguments in C's words.

>>> import flambeau
>>> flambeau.is_grad_enabled(1)
Traceback (most recent call last):
TypeError: torch.is_grad_enabled() takes no arguments (1 given)
"""
from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any


def _refuse(name: str, takes: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    if kwargs:
        raise TypeError(f"torch.{name}() takes no keyword arguments")
    raise TypeError(f"torch.{name}() takes {takes} ({len(args)} given)")


def takes_nothing(function: Callable[[], Any]) -> Any:
    """That function, which has no arguments."""
    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        if args or kwargs:
            _refuse(called.__name__, "no arguments", args, kwargs)
        return function()
    return called


def takes_one(function: Callable[[Any], Any]) -> Any:
    """That function, which has one argument, without a name."""
    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        if len(args) != 1 or kwargs:
            _refuse(called.__name__, "exactly one argument", args, kwargs)
        return function(args[0])
    return called
