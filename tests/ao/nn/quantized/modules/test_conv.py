"""Convolutions with quantised weights."""
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.ao.nn import intrinsic, quantized
from flambeau.ao.nn.intrinsic import quantized as fused
from flambeau.ao.quantization import default_per_channel_weight_observer, default_qconfig


def quantised(*shape):
    """Numbers of seven bits: sums of larger ones overflow in some engines."""
    return torch.quantize_per_tensor(torch.rand(shape) * 3 - 1.5, 0.03, 60, torch.quint8)


def converted(module, kind, high=6.0):
    for part in module.modules():
        part.qconfig = default_qconfig
    module.activation_post_process = default_qconfig.activation()
    module.activation_post_process(torch.tensor([-high, high]))
    return kind.from_float(module)


def assert_rounded(found, wanted):
    scale, zero = found.q_scale(), found.q_zero_point()
    wanted = wanted.detach().clamp(-zero * scale, (127 - zero) * scale)
    torch.testing.assert_close(found.dequantize(), wanted, atol=scale, rtol=0)


@pytest.mark.parametrize("name, options", [
    ("Conv1d", {}), ("Conv2d", {"stride": 2, "padding": 1, "groups": 2}),
    ("Conv2d", {"padding": 1, "padding_mode": "reflect", "bias": False}),
    ("Conv3d", {"dilation": 2}), ("ConvTranspose1d", {"stride": 2, "output_padding": 1}),
    ("ConvTranspose2d", {"padding": 1})])
def test_the_float_function_rounded(name, options):
    module = getattr(nn, name)(2, 4, 2, **options)
    layer = converted(module, getattr(quantized, name))
    x = quantised(1, 2, *(5,) * int(name[-2]))
    module.weight.data = layer.weight().dequantize()
    assert_rounded(layer(x), module(x.dequantize()))
    assert (layer.bias() is None) == (options.get("bias") is False)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_with_a_relu(n):
    row = getattr(intrinsic, f"ConvReLU{n}d")(getattr(nn, f"Conv{n}d")(2, 3, 2), nn.ReLU())
    layer = converted(row, getattr(fused, f"ConvReLU{n}d"))
    x = quantised(1, 2, *(4,) * n)
    row[0].weight.data = layer.weight().dequantize()
    assert_rounded(layer(x), row(x.dequantize()))


def test_a_scale_for_each_channel():
    module = nn.Conv2d(2, 3, 2)
    watch = default_qconfig.activation()
    watch(torch.tensor([-6.0, 6.0]))
    layer = quantized.Conv2d.get_qconv(module, watch, default_per_channel_weight_observer())
    assert layer.weight().qscheme() is torch.per_channel_affine
    assert layer.weight().q_per_channel_scales().shape == (3,)
    torch.testing.assert_close(layer.weight().dequantize(), module.weight, atol=0.005, rtol=0)


def test_state_goes_over():
    layer, other = (quantized.Conv2d(2, 3, 2, padding=1) for _ in range(2))
    layer.set_weight_bias(torch.quantize_per_tensor(torch.randn(3, 2, 2, 2), 0.05, 0, torch.qint8),
                          torch.randn(3))
    layer.scale, layer.zero_point = 0.1, 50
    state = layer.state_dict()
    assert list(state) == ["weight", "bias", "scale", "zero_point"]
    other.load_state_dict(state)
    x = quantised(1, 2, 3, 3)
    assert torch.equal(other(x).int_repr(), layer(x).int_repr())
    assert (other.scale, other.zero_point) == (pytest.approx(0.1), 50)


@pytest.mark.parametrize("made, text", [
    (lambda: quantized.Conv2d(2, 4, (3, 2), padding=1, groups=2, bias=False),
     "QuantizedConv2d(2, 4, kernel_size=(3, 2), stride=(1, 1), scale=1.0, zero_point=0, "
     "padding=(1, 1), groups=2, bias=False)"),
    (lambda: quantized.ConvTranspose1d(2, 4, 3, stride=2, output_padding=1),
     "QuantizedConvTranspose1d(2, 4, kernel_size=(3,), stride=(2,), scale=1.0, zero_point=0, "
     "output_padding=(1,))")])
def test_printed_form(made, text):
    assert repr(made()) == text


def test_refusals():
    layer = quantized.Conv2d(2, 3, 2)
    with pytest.raises(ValueError, match=r"Input shape must be `\(N, C, H, W\)`!"):
        layer(quantised(2, 4, 4))
    with pytest.raises(ValueError, match="in_channels must be divisible by groups"):
        quantized.Conv1d(3, 4, 2, groups=2)
    with pytest.raises(ValueError, match="out_channels must be divisible by groups"):
        quantized.Conv1d(4, 3, 2, groups=2)
    with pytest.raises(ValueError, match='Only "zeros" padding mode is supported'):
        quantized.ConvTranspose2d(1, 1, 2, padding_mode="reflect")
    with pytest.raises(AssertionError, match=r"nnq.Conv2d.from_float only works for Conv2d"):
        quantized.Conv2d.from_float(nn.Conv1d(1, 1, 1))
