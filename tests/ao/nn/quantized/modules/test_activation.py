"""Activation functions of quantised tensors."""
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.ao.nn import quantized
from flambeau.ao.quantization import QConfig, default_observer

X = torch.quantize_per_tensor(torch.linspace(-4, 8, 60).reshape(2, 3, 10), 0.05, 90, torch.quint8)
FLOAT = {"ELU": nn.ELU(0.7), "Hardswish": nn.Hardswish(), "LeakyReLU": nn.LeakyReLU(0.2),
         "Sigmoid": nn.Sigmoid(), "Softmax": nn.Softmax(1), "PReLU": nn.PReLU()}


def observed(name, low=-4.0, high=8.0):
    module = FLOAT[name]
    module.activation_post_process = default_observer()
    module.activation_post_process(torch.tensor([low, high]))
    module.qconfig = QConfig(activation=default_observer, weight=default_observer)
    return module


@pytest.mark.parametrize("name", FLOAT)
def test_the_float_function_rounded(name):
    module = observed(name)
    layer = getattr(quantized, name).from_float(module)
    scale, zero = (v.item() for v in module.activation_post_process.calculate_qparams())
    x = X[:1, :1] if name == "PReLU" else X      # PyTorch has wrong numbers where that is positive
    found = layer(x)
    assert found.q_scale() == pytest.approx(scale) and found.q_zero_point() == zero
    wanted = torch.quantize_per_tensor(module(x.dequantize()).detach(), scale, zero, torch.quint8)
    assert (found.int_repr().long() - wanted.int_repr().long()).abs().max() <= 1


@pytest.mark.parametrize("name", ["ELU", "Hardswish", "LeakyReLU", "Softmax"])
def test_with_a_scale_given(name):
    layer = getattr(quantized, name).from_reference(FLOAT[name], 0.1, 40)
    found = layer(X)
    assert (round(found.q_scale(), 6), found.q_zero_point()) == (0.1, 40)
    torch.testing.assert_close(found.dequantize(), FLOAT[name](X.dequantize()).clamp(-4),
                               atol=0.06, rtol=0)


def test_relu6():
    layer = quantized.ReLU6()
    assert torch.equal(layer(X).dequantize(), X.dequantize().clamp(0, 6))
    assert quantized.ReLU6.from_float(nn.ReLU6(inplace=True)).inplace
    again = X.clone()
    assert quantized.ReLU6(inplace=True)(again) is again and again.dequantize().max() == 6


@pytest.mark.parametrize("name, text", [
    ("ELU", "QuantizedELU(alpha=1.0)"), ("Hardswish", "QuantizedHardswish()"),
    ("LeakyReLU", "QuantizedLeakyReLU(negative_slope=0.01)"), ("Sigmoid", "Sigmoid()"),
    ("PReLU", "QuantizedPReLU()")])
def test_printed_form(name, text):
    assert repr(getattr(quantized, name)(0.1, 3)) == text


def test_state():
    state = quantized.Hardswish(0.1, 3).state_dict()
    assert list(state) == ["scale", "zero_point"] and state["zero_point"].item() == 3
    assert list(quantized.LeakyReLU(0.1, 3).state_dict()) == ["scale", "zero_point"]
    assert not quantized.ELU(0.1, 3).state_dict() and not quantized.Sigmoid(0.1, 3).state_dict()


def test_the_weight_of_prelu():
    layer = quantized.PReLU(0.05, 90)
    layer.set_weight(torch.quantize_per_tensor(torch.tensor([0.5]), 0.5, 0, torch.quint8))
    x = X.dequantize()
    torch.testing.assert_close(layer(X).dequantize(), torch.where(x > 0, x, x / 2), atol=0.03,
                               rtol=0)
