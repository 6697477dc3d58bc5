"""Layers that `flambeau/ops/nn/rrelu.py` computes."""
from layer_tests import LayerTests
from layers import Cases

import flambeau
from flambeau.func import vmap

cases = Cases()
simple = cases.simple
simple("rrelu_eval", lambda t, F, x: F.rrelu(x), (3, 4))


class TestLayers(LayerTests):
    cases = cases


def test_vmap_keeps_what_is_positive():
    x = flambeau.tensor([[1.0, -1.0], [-2.0, 3.0]])
    y = vmap(lambda x: flambeau.nn.functional.rrelu(x, 0.25, 0.5, True), randomness="different")(x)
    assert y[0, 0] == 1 and y[1, 1] == 3
    assert 0.25 <= -y[0, 1] <= 0.5 and 0.5 <= -y[1, 0] <= 1
