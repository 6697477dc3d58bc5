"""Layers that `flambeau/ops/nn/softmax.py` computes."""
from layer_tests import LayerTests
from layers import Cases

import flambeau as torch

cases = Cases()
simple = cases.simple
simple("softmax", lambda t, F, x: F.softmax(x, 1), (3, 4))
simple("softmax_first", lambda t, F, x: t.softmax(x, 0), (3, 4, 2))
simple("softmin", lambda t, F, x: F.softmin(x, -1), (3, 4))
simple("log_softmax", lambda t, F, x: F.log_softmax(x, 1), (3, 4))
simple("log_softmax_middle", lambda t, F, x: x.log_softmax(1), (2, 3, 4))


class TestLayers(LayerTests):
    cases = cases


def test_safe_softmax_of_nothing_has_no_slope():
    x = torch.tensor([[-torch.inf] * 2, [0.0, 0.0]], requires_grad=True)
    y = torch.ops.aten._safe_softmax(x, 1)
    assert y.tolist() == [[0, 0], [0.5, 0.5]]
    g, = torch.autograd.grad((y * torch.tensor([1.0, 3.0])).sum(), x)
    assert g.tolist() == [[0, 0], [-0.5, 0.5]]
