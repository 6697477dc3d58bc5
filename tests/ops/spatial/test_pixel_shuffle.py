"""Layers that `flambeau/ops/spatial/pixel_shuffle.py` computes."""
from layer_tests import LayerTests
from layers import Cases

cases = Cases()
simple = cases.simple
simple("unfold", lambda t, F, x: F.unfold(x, (2, 3), (1, 1), (1, 0), (2, 1)), (2, 2, 4, 5))
simple("fold", lambda t, F, x: F.fold(x, (4, 5), (2, 2), 1, 1, 2), (2, 8, 9))
simple("pixel_shuffle", lambda t, F, x: F.pixel_shuffle(x, 2), (1, 8, 2, 3))
simple("pixel_unshuffle", lambda t, F, x: F.pixel_unshuffle(x, 2), (1, 2, 4, 6))
simple("channel_shuffle", lambda t, F, x: F.channel_shuffle(x, 3), (1, 6, 2))


class TestLayers(LayerTests):
    cases = cases
