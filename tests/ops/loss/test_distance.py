"""Layers that `flambeau/ops/loss/distance.py` computes."""
from layer_tests import LayerTests
from layers import Cases

cases = Cases()
simple = cases.simple
simple("cosine_similarity", lambda t, F, x, y: F.cosine_similarity(x, y), (3, 4), (3, 4))
simple("pairwise_distance", lambda t, F, x, y: F.pairwise_distance(x, y, 3), (3, 4), (3, 4))
for _p in (0.5, 1.0, 2.0, 3.0, float("inf")):
    simple(f"cdist_{_p}", lambda t, F, x, y, p=_p: t.cdist(x, y, p), (2, 3, 4), (2, 5, 4))
    simple(f"pdist_{_p}", lambda t, F, x, p=_p: F.pdist(x, p), (4, 3))
simple("cdist_broadcast", lambda t, F, x, y: t.cdist(x, y), (3, 4), (2, 5, 4))


class TestLayers(LayerTests):
    cases = cases
