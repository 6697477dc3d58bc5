"""Ops in terms of others, as libraries register them for the compiler that is not there."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau import _decomp

decompositions: dict[Any, Callable[..., Any]] = {}


def register_decomposition(ops: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a function that says what `ops` are made of: it is kept in `decompositions`."""
    return _decomp.register_decomposition(ops, decompositions)


def select_decomp_table() -> dict[Any, Callable[..., Any]]:
    """The decompositions that compilation would use."""
    return decompositions
