"""`PassBase`: a pass over a graph module, with checks before and after."""
from __future__ import annotations

import abc
from typing import NamedTuple

from flambeau.fx.graph_module import GraphModule


class PassResult(NamedTuple):
    """What a pass gives: the module, and whether it has changed it."""
    graph_module: GraphModule
    modified: bool


class PassBase(abc.ABC):
    """A pass: subclasses say in `call` what it does, and in `requires` and `ensures` what has to
    hold before and after."""

    def __call__(self, graph_module: GraphModule) -> PassResult | None:
        self.requires(graph_module)
        found = self.call(graph_module)
        self.ensures(graph_module)
        return found

    @abc.abstractmethod
    def call(self, graph_module: GraphModule) -> PassResult | None:
        """What the pass does."""

    def requires(self, graph_module: GraphModule) -> None:  # noqa: B027
        """Check the module before the pass."""

    def ensures(self, graph_module: GraphModule) -> None:  # noqa: B027
        """Check the module after the pass."""


__all__ = ["PassBase", "PassResult"]
