"""Layers that `flambeau/ops/nn/bilinear.py` computes."""
from layer_tests import LayerTests
from layers import Cases

cases = Cases()
simple = cases.simple
simple("bilinear", lambda t, F, x, y, w, b: F.bilinear(x, y, w, b), (2, 3), (2, 4), (5, 3, 4), (5,))
simple("bilinear_3d", lambda t, F, x, y, w: F.bilinear(x, y, w), (2, 2, 3), (2, 2, 4), (3, 3, 4))


class TestLayers(LayerTests):
    cases = cases
