"""Graph modules whose code is made when it is first asked for.

Code is quick to make here: `_LazyGraphModule` makes it at once, as any graph module.
"""
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from flambeau.fx.graph_module import GraphModule

_use_lazy_graph_module_flag = False
_force_skip_lazy_graph_module_flag = False


class _LazyGraphModule(GraphModule):
    """A graph module; `real_recompile` makes its code."""

    @classmethod
    def from_graphmodule(cls, gm: GraphModule) -> GraphModule:
        """A module of this class with the graph of another."""
        return gm if isinstance(gm, _LazyGraphModule) else _LazyGraphModule(gm, gm.graph)

    @staticmethod
    def force_recompile(gm: GraphModule) -> None:
        """See to it that the code is there."""

    def real_recompile(self) -> None:
        """Make the code."""
        self.recompile()

    def _needs_recompile(self) -> bool:
        return False


@contextlib.contextmanager
def _use_lazy_graph_module(should_use: bool) -> Iterator[None]:
    """Inside, `_make_graph_module` makes lazy modules, or does not."""
    global _use_lazy_graph_module_flag
    before = _use_lazy_graph_module_flag
    _use_lazy_graph_module_flag = should_use and not _force_skip_lazy_graph_module_flag
    try:
        yield
    finally:
        _use_lazy_graph_module_flag = before


@contextlib.contextmanager
def _force_skip_lazy_graph_module() -> Iterator[None]:
    """Inside, no lazy modules are made."""
    global _force_skip_lazy_graph_module_flag
    before, _force_skip_lazy_graph_module_flag = _force_skip_lazy_graph_module_flag, True
    try:
        yield
    finally:
        _force_skip_lazy_graph_module_flag = before


def _get_graph_module_cls() -> type[GraphModule]:
    return _LazyGraphModule if _use_lazy_graph_module_flag else GraphModule


def _make_graph_module(*args: Any, graph_module_cls: Any = None, **kwargs: Any) -> GraphModule:
    """A graph module, lazy or not as is chosen."""
    return (graph_module_cls or _get_graph_module_cls())(*args, **kwargs)
