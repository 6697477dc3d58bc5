"""Assertions on symbolic sizes, in the graph."""
from __future__ import annotations

from typing import Any

from flambeau.fx import GraphModule


def insert_deferred_runtime_asserts(gm: GraphModule, shape_env: Any, name: str,
                                    export: bool = False) -> None:
    """Put the assumptions that `shape_env` has about sizes of values into the graph.

    Sizes in graphs are numbers here or computed from those of the inputs, so that an environment
    has no such assumptions, and the graph stays as it is.
    """
    pending = getattr(shape_env, "deferred_runtime_asserts", None)
    if pending:
        raise NotImplementedError("insert_deferred_runtime_asserts: assumptions about sizes that "
                                  "depend on values")


__all__ = ["insert_deferred_runtime_asserts"]
