"""The class behind symbolic numbers. No number is symbolic here, so none is made."""
from __future__ import annotations

from typing import Any


class SymNode:
    """Would hold the expression of a symbolic number; can't be made."""

    def __init__(self, expr: Any, shape_env: Any, pytype: Any, hint: Any, constant: Any = None,
                 fx_node: Any = None, optimized_summation: bool = False):
        raise NotImplementedError("SymNode: flambeau has no symbolic numbers")


__all__ = ["SymNode"]
