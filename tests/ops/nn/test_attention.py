"""Layers that `flambeau/ops/nn/attention.py` computes."""
from layer_tests import LayerTests
from layers import Cases

import flambeau as torch

cases = Cases()
simple = cases.simple


def _attention(t, F, q, k, v, **options):
    return F.scaled_dot_product_attention(q, k, v, **options)


simple("attention", _attention, (2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 3))
simple("attention_causal", lambda *a: _attention(*a, is_causal=True), (1, 2, 3, 4), (1, 2, 3, 4),
       (1, 2, 3, 4))
simple("attention_mask", lambda t, F, q, k, v, m: _attention(t, F, q, k, v, attn_mask=m, scale=0.3),
       (2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 4), (3, 5))
simple("attention_bool", lambda t, F, q, k, v: _attention(
    t, F, q, k, v, attn_mask=t.tensor([[True, False, True], [False, True, True]])), (2, 4), (3, 4),
    (3, 4))
simple("attention_groups", lambda t, F, q, k, v: _attention(t, F, q, k, v, enable_gqa=True),
       (1, 4, 3, 2), (1, 2, 3, 2), (1, 2, 3, 2))


@cases("multi_head_attention")
def _(torch, make):
    x, y = make(3, 2, 4), make(5, 2, 4)
    out, weights = torch.nn.functional.multi_head_attention_forward(
        x, y, y, 4, 2, make(12, 4), make(12), make(1, 1, 4), make(1, 1, 4), True, 0.0, make(4, 4),
        make(4), key_padding_mask=torch.tensor([[False] * 5, [False] * 4 + [True]]))
    return torch.cat([out.flatten(), weights.flatten()])


@cases("multi_head_attention_causal")
def _(torch, make):
    x = make(3, 4)
    mask = torch.ones(3, 3, dtype=torch.bool).triu(1)
    return torch.nn.functional.multi_head_attention_forward(
        x, x, x, 4, 2, make(12, 4), None, None, None, False, 0.0, make(4, 4), None,
        need_weights=False, attn_mask=mask, is_causal=True)[0]


class TestLayers(LayerTests):
    cases = cases


def test_a_row_of_zeros_lies_where_the_attention_is():
    layer, x = torch.nn.MultiheadAttention(4, 2, add_zero_attn=True, device="meta"), \
        torch.ones(3, 2, 4, device="meta")
    for need_weights in (True, False):
        output, _ = layer(x, x, x, need_weights=need_weights)
        assert output.is_meta and output.shape == (3, 2, 4)
