"""Layers that `flambeau/ops/loss/functions.py` computes."""
import pytest
from layer_tests import LayerTests
from layers import Cases

import flambeau as torch

cases = Cases()
cases.pair("gaussian", lambda t, F, x, y, r: F.gaussian_nll_loss(x, y * 2, y, True, reduction=r),
      "positive")
cases.pair("multilabel_soft_margin", lambda t, F, x, y, r: F.multilabel_soft_margin_loss(
    x, y, reduction=r))
cases.pair("triplet_distance", lambda t, F, x, y, r: F.triplet_margin_with_distance_loss(
    x, y, x * y, distance_function=lambda a, b: (a - b).abs().sum(-1), reduction=r))


class TestLayers(LayerTests):
    cases = cases


def test_what_linear_cross_entropy_asks_first():
    weight = torch.ones(5, 3)
    for input, given, message in ((None, weight, "'NoneType' object has no attribute 'dim'"),
                                  (weight[0], None, "'NoneType' object has no attribute 'dim'"),
                                  (weight[0], weight, "'list' object has no attribute 'shape'")):
        with pytest.raises(AttributeError, match=message):
            torch.nn.functional.linear_cross_entropy(input, given, [1])
    with pytest.raises(RuntimeError, match="expected input with dimensionality 1 or 2, got 0"):
        torch.nn.functional.linear_cross_entropy(torch.ones(()), None, [1])
