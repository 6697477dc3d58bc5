"""`ShapeProp`: notes the shape and type of each value of a graph."""
from __future__ import annotations

from typing import Any, NamedTuple

import flambeau
from flambeau import fx
from flambeau.fx.node import map_aggregate


class TensorMetadata(NamedTuple):
    """What a tensor looks like."""
    shape: flambeau.Size
    dtype: flambeau.dtype
    requires_grad: bool
    stride: tuple[int, ...]


class ShapeProp(fx.Interpreter):
    """Runs a graph; `node.meta["tensor_meta"]` then says what each node's value looks like.

    >>> gm = fx.symbolic_trace(lambda x: x.flatten(1))
    >>> _ = ShapeProp(gm).propagate(flambeau.ones(2, 3, 4))
    >>> [node.meta["tensor_meta"].shape for node in gm.graph.nodes]
    [torch.Size([2, 3, 4]), torch.Size([2, 12]), torch.Size([2, 12])]
    """

    def run_node(self, n: fx.Node) -> Any:
        """Run a node, and note what its value looks like."""
        result = super().run_node(n)
        found = []

        def look(value: Any) -> Any:
            if not isinstance(value, flambeau.Tensor):
                return value
            found.append(value)
            return TensorMetadata(value.shape, value.dtype, value.requires_grad, value.stride())
        meta = map_aggregate(result, look)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the graph on arguments."""
        return self.run(*args)
