"""`FakeTensorProp`: notes what each value of a graph looks like, without computing it."""
from __future__ import annotations

from typing import Any

from flambeau import Tensor, fx
from flambeau._subclasses.fake_tensor import FakeTensorMode
from flambeau.fx.experimental._tracked import extract_val


class FakeTensorProp(fx.Interpreter):
    """Runs a graph on fake tensors; `node.meta["val"]` then holds each node's.

    >>> import flambeau
    >>> gm = fx.symbolic_trace(lambda x: x.flatten(1))
    >>> FakeTensorProp(gm).propagate(flambeau.ones(2, 3, 4))
    FakeTensor(..., size=(2, 12))
    """

    def __init__(self, module: Any, mode: FakeTensorMode | None = None):
        super().__init__(module)
        self._mode = mode or FakeTensorMode(allow_non_fake_inputs=True)

    def run_node(self, n: fx.Node) -> Any:
        """Run a node, and note its value."""
        result = super().run_node(n)
        n.meta["val"] = extract_val(result)
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the graph on arguments."""
        return self.propagate_dont_convert_inputs(*[
            self._mode.from_tensor(a) if isinstance(a, Tensor) else a for a in args])

    def propagate_dont_convert_inputs(self, *args: Any) -> Any:
        """Run the graph on arguments that are fake already."""
        with self._mode:
            return self.run(*args)


__all__ = ["FakeTensorProp"]
