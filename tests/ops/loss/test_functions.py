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


F = torch.nn.functional
LOSSES = {
    "multi_margin_loss": lambda x, y: F.multi_margin_loss(x, y),
    "weighted": lambda x, y: F.multi_margin_loss(x, y, weight=x[0]),
    "cross_entropy": lambda x, y: F.cross_entropy(x, y, reduction="none"),
    "ctc_loss": lambda x, y: F.ctc_loss(x.log_softmax(1).expand(6, 3, 4), y[:, None], [6] * 3,
                                        [1] * 3, reduction="none"),
    "multilabel": lambda x, y: F.multilabel_margin_loss(x, y[:, None].expand(3, 4)),
    "gaussian": lambda x, y: F.gaussian_nll_loss(x, x, x * x),
    "embedding": lambda x, y: F.cosine_embedding_loss(x, x, y),
    "triplet": lambda x, y: F.triplet_margin_loss(x, x, x, swap=True),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_without_memory_have_the_shape_of_those_with(name):
    x, y = torch.rand(3, 4), torch.ones(3, dtype=torch.int64)
    found = LOSSES[name](x.to("meta"), y.to("meta"))
    wanted = LOSSES[name](x, y)
    assert found.is_meta and (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
