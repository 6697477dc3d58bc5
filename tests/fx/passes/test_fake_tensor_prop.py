"""Values without memory along a graph."""
from __future__ import annotations

from fx_cases import Model

import flambeau as torch
from flambeau import fx
from flambeau._subclasses.fake_tensor import FakeTensorMode
from flambeau.fx.passes.fake_tensor_prop import FakeTensorProp

X = torch.arange(6.0).view(2, 3)


def test_values_of_nodes():
    gm = fx.symbolic_trace(Model())
    out, _ = FakeTensorProp(gm, FakeTensorMode(allow_non_fake_inputs=True)).propagate(X, 1.0)
    assert out.shape == (2, 2)
    node, = gm.graph.find_nodes(op="call_method", target="relu")
    assert repr(node.meta["val"]).startswith("FakeTensor(..., size=(2, 4)")
