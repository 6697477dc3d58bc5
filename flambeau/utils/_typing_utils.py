"""Helpers for annotations."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def not_none(obj: T | None) -> T:
    """A value that is not None; TypeError if it is."""
    if obj is None:
        raise TypeError("Invariant encountered: value was None when it should not be")
    return obj


def copy_func_params(source_func: Callable[..., Any]) -> Callable[[T], T]:
    """A decorator for type checkers: the function has the signature of another."""
    return lambda function: function


def copy_method_params(source_method: Callable[..., Any]) -> Callable[[T], T]:
    """A decorator for type checkers: the method has the signature of another."""
    return lambda function: function


copy_func_sig, copy_method_sig = copy_func_params, copy_method_params
