"""Layers that `flambeau/ops/nn/normalize.py` computes."""
from layer_tests import LayerTests
from layers import Cases

cases = Cases()
simple = cases.simple
simple("layer_norm", lambda t, F, x, w, b: F.layer_norm(x, (4,), w, b), (2, 3, 4), (4,), (4,))
simple("layer_norm_two", lambda t, F, x: F.layer_norm(x, (3, 4)), (2, 3, 4))
simple("group_norm", lambda t, F, x, w, b: F.group_norm(x, 2, w, b), (2, 4, 3), (4,), (4,))
simple("group_norm_plain", lambda t, F, x: F.group_norm(x, 2), (2, 4, 2, 2))
simple("rms_norm", lambda t, F, x, w: F.rms_norm(x, (4,), w), (2, 3, 4), (4,))
simple("rms_norm_eps", lambda t, F, x: F.rms_norm(x, (3, 4), eps=0.1), (2, 3, 4))
simple("local_response_norm", lambda t, F, x: F.local_response_norm(x, 3, 0.5), (2, 4, 3))
simple("local_response_norm_4d", lambda t, F, x: F.local_response_norm(x, 2, 0.5), (2, 4, 2, 2))
simple("normalize", lambda t, F, x: F.normalize(x), (2, 3))
simple("normalize_p", lambda t, F, x: F.normalize(x, 3, 0), (2, 3))


class TestLayers(LayerTests):
    cases = cases
