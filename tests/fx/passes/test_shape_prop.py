"""Shapes of what nodes give."""
from __future__ import annotations

from fx_cases import Net

import flambeau
from flambeau import fx
from flambeau.fx.passes.shape_prop import ShapeProp


def test_shapes():
    module = fx.symbolic_trace(Net())
    ShapeProp(module).propagate(flambeau.ones(5, 2))
    assert all(n.meta["tensor_meta"].shape[-1] == 2 for n in module.graph.nodes)
