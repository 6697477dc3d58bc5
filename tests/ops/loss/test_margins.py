"""Layers that `flambeau/ops/loss/margins.py` computes."""
from layer_tests import LayerTests
from layers import REDUCTIONS, WEIGHT, Cases

cases = Cases()
cases.pair("pairwise_triplet", lambda t, F, x, y, r: F.triplet_margin_loss(
    x, y, x * y, swap=True, reduction=r))
cases.signed("hinge_embedding", lambda F, x, y, s, r: F.hinge_embedding_loss(
    x, s[:, None], 0.9, reduction=r))
cases.signed("cosine_embedding", lambda F, x, y, s, r: F.cosine_embedding_loss(
    x, y, s, 0.1, reduction=r))
cases.signed("margin_ranking", lambda F, x, y, s, r: F.margin_ranking_loss(
    x[:, 0], y[:, 0], s, 0.2, reduction=r))
cases.classes("multi_margin", lambda t, F, x, y, r: F.multi_margin_loss(
    x, y, 2, 0.8, t.tensor(WEIGHT, dtype=x.dtype), reduction=r))


for _reduction in REDUCTIONS:
    @cases(f"multilabel_margin_{_reduction}")
    def _(torch, make, _r=_reduction):
        y = torch.tensor([[1, 2, -1, 0], [3, -1, 1, 2]])
        return torch.nn.functional.multilabel_margin_loss(make(2, 4), y, reduction=_r)


class TestLayers(LayerTests):
    cases = cases
