"""Layers that `flambeau/ops/nn/activation.py` computes."""
from layer_tests import LayerTests
from layers import Cases

cases = Cases()
simple = cases.simple
for _name in ("relu", "relu6", "gelu", "silu", "elu", "leaky_relu", "selu", "celu", "softplus",
              "softsign", "hardtanh", "hardsigmoid", "hardswish", "tanh", "sigmoid", "mish",
              "logsigmoid", "glu", "hardshrink", "softshrink", "tanhshrink"):
    simple(_name, lambda t, F, x, n=_name: getattr(F, n)(x * 3), (3, 4))
simple("gelu_tanh", lambda t, F, x: F.gelu(x * 3, approximate="tanh"), (3, 4))
simple("elu_alpha", lambda t, F, x: F.elu(x, 0.7), (3, 4))
simple("celu_alpha", lambda t, F, x: F.celu(x, 0.7), (3, 4))
simple("softplus_beta", lambda t, F, x: F.softplus(x * 9, 2.5, 10), (3, 4))
simple("hardtanh_range", lambda t, F, x: F.hardtanh(x, -0.3, 0.9), (3, 4))
simple("leaky_relu_slope", lambda t, F, x: F.leaky_relu(x, 0.3), (3, 4))
simple("threshold", lambda t, F, x: F.threshold(x, 0.1, 20.0), (3, 4))
simple("prelu", lambda t, F, x, w: F.prelu(x, w), (2, 3, 4), (3,))
simple("prelu_one", lambda t, F, x, w: F.prelu(x, w), (2, 3), (1,))
simple("glu_dim", lambda t, F, x: F.glu(x, 0), (4, 3))
simple("hardshrink_limit", lambda t, F, x: F.hardshrink(x, 0.3), (3, 4))


class TestLayers(LayerTests):
    cases = cases
