"""Layers that `flambeau/ops/spatial/adaptive_pool.py` computes."""
from layer_tests import LayerTests
from layers import Cases

cases = Cases()
simple = cases.simple
simple("adaptive_avg_pool1d", lambda t, F, x: F.adaptive_avg_pool1d(x, 3), (2, 2, 7))
simple("adaptive_avg_pool2d", lambda t, F, x: F.adaptive_avg_pool2d(x, (2, 3)), (2, 2, 5, 7))
simple("adaptive_avg_pool2d_one", lambda t, F, x: F.adaptive_avg_pool2d(x, 1), (2, 2, 5, 7))
simple("adaptive_avg_pool3d", lambda t, F, x: F.adaptive_avg_pool3d(x, (2, None, 1)),
       (1, 2, 3, 2, 3))
simple("adaptive_max_pool1d", lambda t, F, x: F.adaptive_max_pool1d(x, 3), (2, 2, 7), apart=True)
simple("adaptive_max_pool2d", lambda t, F, x: F.adaptive_max_pool2d(x, (2, 3)), (2, 2, 5, 7),
       apart=True)
simple("adaptive_max_pool3d", lambda t, F, x: F.adaptive_max_pool3d(x, 2), (1, 2, 3, 4, 3),
       apart=True)


class TestLayers(LayerTests):
    cases = cases
