"""Layers that `flambeau/ops/nn/rrelu.py` computes."""
from layer_tests import LayerTests
from layers import Cases

cases = Cases()
simple = cases.simple
simple("rrelu_eval", lambda t, F, x: F.rrelu(x), (3, 4))


class TestLayers(LayerTests):
    cases = cases
