"""Attention made of modules that can be observed."""
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.ao.nn import quantizable, quantized
from flambeau.ao.quantization import convert, default_qconfig


def observed(**options):
    module = nn.MultiheadAttention(8, 2, **options).eval()
    module.qconfig = default_qconfig
    for name in ("in_proj_bias", "bias_k", "bias_v"):
        if getattr(module, name) is not None:
            getattr(module, name).data.normal_()
    return module, quantizable.MultiheadAttention.from_float(module)


@pytest.mark.parametrize("options", [
    {}, {"bias": False}, {"add_zero_attn": True},
    {"add_bias_kv": True}, {"add_bias_kv": True, "add_zero_attn": True}])
def test_it_computes_what_the_float_module_computes(options):
    module, layer = observed(**options)
    x = torch.randn(3, 3, 8)
    for found, wanted in zip(layer(x, x, x), module(x, x, x)):
        torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-4)
    mask = torch.tensor([[False, True, False], [False, False, False], [True, False, False]])
    attn = torch.triu(torch.ones(3, 3, dtype=torch.bool), 1)
    for found, wanted in zip(layer(x, x, x, key_padding_mask=mask[:1].expand(3, 3)),
                             module(x, x, x, key_padding_mask=mask[:1].expand(3, 3))):
        torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-4)
    found = layer(x, x, x, attn_mask=attn, average_attn_weights=False)[1]
    torch.testing.assert_close(found, module(x, x, x, attn_mask=attn,
                                             average_attn_weights=False)[1],
                               atol=1e-5, rtol=1e-4)


def test_the_batch_may_come_first():
    """PyTorch takes the result, sequence first, for one that has the batch first."""
    module, layer = observed(batch_first=True)
    x = torch.randn(2, 3, 8)
    for found, wanted in zip(layer(x, x, x), module(x, x, x)):
        torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-4)


def test_keys_and_values_of_other_sizes():
    module, layer = observed(kdim=3, vdim=5)
    q, k, v = torch.randn(2, 1, 8), torch.randn(4, 1, 3), torch.randn(4, 1, 5)
    for found, wanted in zip(layer(q, k, v), module(q, k, v)):
        torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-4)
    assert layer(q, k, v, need_weights=False)[1] is None


def test_converted_and_back():
    """PyTorch has a `dequantize`, which fails at a parameter that requires gradients."""
    module, layer = observed()
    x = torch.rand(3, 1, 8)
    wanted = layer(x, x, x)[0]
    integers = quantized.MultiheadAttention.from_observed(layer)
    back = integers.dequantize()
    assert type(back) is nn.MultiheadAttention
    torch.testing.assert_close(back.in_proj_weight, module.in_proj_weight, atol=0.01, rtol=0)
    torch.testing.assert_close(back.in_proj_bias, module.in_proj_bias)
    torch.testing.assert_close(back(x, x, x)[0], wanted, atol=0.05, rtol=0)


def test_refusals():
    layer = quantizable.MultiheadAttention(4, 2)
    x = torch.zeros(2, 1, 4)
    with pytest.raises(AssertionError, match="causal mask not supported by AO MHA module"):
        layer(x, x, x, is_causal=True)
    with pytest.raises(AssertionError, match="Only allow causal mask or attn_mask"):
        layer(x, x, x, is_causal=True, attn_mask=torch.zeros(2, 2))
    with pytest.raises(AssertionError, match="qconfig"):
        quantizable.MultiheadAttention.from_float(nn.MultiheadAttention(4, 2))
    with pytest.raises(NotImplementedError, match="prepare an MHA module"):
        quantizable.MultiheadAttention.from_observed(layer)
    assert convert(layer) is not layer and layer._get_name() == "QuantizableMultiheadAttention"
