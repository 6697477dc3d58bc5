"""Layers of transformers that are one op: the same numbers as the modules made of many."""
import pytest

import flambeau as torch
from flambeau import nn


def _module(**options):
    torch.manual_seed(0)
    return nn.MultiheadAttention(8, 2, batch_first=True, **options)


def _native(m, q, k, v, *masks, **options):
    return torch._native_multi_head_attention(
        q, k, v, 8, 2, m.in_proj_weight, m.in_proj_bias, m.out_proj.weight, m.out_proj.bias,
        *masks, **options)


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("kind", [None, 0, 1])
def test_attention_is_that_of_the_module(average, kind):
    m = _module()
    q, k = torch.randn(3, 5, 8), torch.randn(3, 5, 8)
    mask = None if kind is None else torch.rand(*((5, 5) if kind == 0 else (3, 5))) < 0.3
    names = {0: "attn_mask", 1: "key_padding_mask"}
    given = {} if kind is None else {names[kind]: mask}
    for key in (q, k):
        expected = m(q, key, key, average_attn_weights=average, **given)
        torch.testing.assert_close(_native(m, q, key, key, mask, mask_type=kind,
                                           average_attn_weights=average), expected)
    assert _native(m, q, q, q, need_weights=False)[1] is None


def test_what_does_not_fit_is_refused():
    m, x = _module(), torch.randn(3, 5, 8)
    with pytest.raises(RuntimeError, match="expected `query`/`key`/`value` shapes to match"):
        _native(m, x, x[:, :2], x[:, :2])
    with pytest.raises(RuntimeError, match="Mask Type should be defined"):
        _native(m, x, x, x, torch.zeros(3, 5, dtype=torch.bool))
    with pytest.raises(RuntimeError, match=r"mask_type == 0 mask shape should be \(L, L\)"):
        _native(m, x, x, x, torch.zeros(3, 5, dtype=torch.bool), mask_type=0)
    with pytest.warns(UserWarning, match="Converting mask without torch.bool dtype"):
        _native(m, x, x, x, torch.zeros(3, 5), mask_type=1)


def test_heads_of_projections():
    x, bias = torch.randn(2, 3, 12), torch.randn(12)
    q, k, v = torch._transform_bias_rescale_qkv(x, bias, 2)
    parts = [(x + bias)[..., i:i + 4].view(2, 3, 2, 2).transpose(1, 2) for i in (0, 4, 8)]
    torch.testing.assert_close((q, k, v), (parts[0] / 2 ** 0.5, parts[1], parts[2]))
    assert all(part.is_contiguous() for part in (q, k, v))


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_layer_of_an_encoder_is_that_of_the_module(norm_first, activation):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, activation, batch_first=True,
                                       norm_first=norm_first)
    x, attention = torch.randn(3, 5, 8), layer.self_attn
    found = torch._transformer_encoder_layer_fwd(
        x, 8, 2, attention.in_proj_weight, attention.in_proj_bias, attention.out_proj.weight,
        attention.out_proj.bias, activation == "gelu", norm_first, layer.norm1.eps,
        layer.norm1.weight, layer.norm1.bias, layer.norm2.weight, layer.norm2.bias,
        layer.linear1.weight, layer.linear1.bias, layer.linear2.weight, layer.linear2.bias)
    torch.testing.assert_close(found, layer(x))
