"""Batch normalisation of quantised tensors."""
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.ao.nn import intrinsic, quantized
from flambeau.ao.nn.intrinsic import quantized as fused
from flambeau.ao.quantization import default_observer


def trained(n):
    bn = getattr(nn, f"BatchNorm{n}d")(3).eval()
    for name, low in (("weight", 0.5), ("bias", -1), ("running_mean", -1), ("running_var", 0.5)):
        getattr(bn, name).data.uniform_(low, low + 1)
    return bn, torch.quantize_per_tensor(torch.randn(2, 3, *(4,) * n), 0.03, 120, torch.quint8)


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("relu", [False, True])
def test_the_float_function_rounded(n, relu):
    bn, x = trained(n)
    row = getattr(intrinsic, f"BNReLU{n}d")(bn, nn.ReLU()) if relu else bn
    kind = getattr(fused, f"BNReLU{n}d") if relu else getattr(quantized, f"BatchNorm{n}d")
    found = kind.from_reference(row, torch.tensor(0.05), torch.tensor(100))(x)
    assert (round(found.q_scale(), 6), found.q_zero_point()) == (0.05, 100)
    wanted = row(x.dequantize()).detach().clamp(-5, 155 * 0.05)
    torch.testing.assert_close(found.dequantize(), wanted, atol=0.0251, rtol=0)


@pytest.mark.parametrize("n", [2, 3])
def test_from_an_observed_module(n):
    bn, x = trained(n)
    bn.activation_post_process = default_observer()
    wanted = bn.activation_post_process(bn(x.dequantize())).detach()
    layer = getattr(quantized, f"BatchNorm{n}d").from_float(bn)
    scale, zero = bn.activation_post_process.calculate_qparams()
    assert (layer.scale, layer.zero_point) == (scale, zero)
    torch.testing.assert_close(layer(x).dequantize(), wanted, atol=float(scale), rtol=0)


def test_state_and_shape():
    layer = quantized.BatchNorm2d(3)
    assert list(layer.state_dict()) == ["weight", "bias", "running_mean", "running_var",
                                        "num_batches_tracked", "scale", "zero_point"]
    assert repr(layer).startswith("QuantizedBatchNorm2d(3, eps=1e-05, momentum=0.1")
    x = torch.quantize_per_tensor(torch.zeros(1, 3, 2), 1.0, 0, torch.quint8)
    with pytest.raises(RuntimeError, match=r"Expecting the input tensor of rank 4."):
        layer(x)
    with pytest.raises(RuntimeError, match=r"Expecting the input tensor of rank 5."):
        quantized.BatchNorm3d(3)(x)
