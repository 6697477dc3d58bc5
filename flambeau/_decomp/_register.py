"""The table of decompositions that are there beside those of `export`, and how one gets in.

Half types are computed in float32 and rounded once, as the kernels do.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau._ops import OpOverload

TABLE: dict[OpOverload, Callable[..., Any]] = {}
_HALF = (flambeau.float16, flambeau.bfloat16)


def stands_for(*overloads: OpOverload, in_float: bool = True) -> Callable[..., Any]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        made = _computed_in_float(function) if in_float else function
        for overload in overloads:
            TABLE[overload] = made
        return made
    return register


def _computed_in_float(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        given = [a for a in args if isinstance(a, Tensor)]
        own = next((a.dtype for a in given if a.dtype in _HALF), None)
        if own is None:
            return function(*args, **kwargs)
        found = function(*[wide(a) for a in args], **{k: wide(v) for k, v in kwargs.items()})
        return tuple(f.to(own) for f in found) if isinstance(found, tuple) else found.to(own)
    return run


def wide(value: Any) -> Any:
    return value.float() if isinstance(value, Tensor) and value.dtype in _HALF else value
