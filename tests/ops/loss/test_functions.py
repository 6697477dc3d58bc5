"""Layers that `flambeau/ops/loss/functions.py` computes."""
from layer_tests import LayerTests
from layers import Cases

cases = Cases()
cases.pair("gaussian", lambda t, F, x, y, r: F.gaussian_nll_loss(x, y * 2, y, True, reduction=r),
      "positive")
cases.pair("multilabel_soft_margin", lambda t, F, x, y, r: F.multilabel_soft_margin_loss(
    x, y, reduction=r))
cases.pair("triplet_distance", lambda t, F, x, y, r: F.triplet_margin_with_distance_loss(
    x, y, x * y, distance_function=lambda a, b: (a - b).abs().sum(-1), reduction=r))


class TestLayers(LayerTests):
    cases = cases
