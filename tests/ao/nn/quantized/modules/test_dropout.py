"""Dropout of quantised tensors: none."""
import flambeau as torch
from flambeau import nn
from flambeau.ao.nn import quantized


def test_numbers_pass_in_training_too():
    x = torch.quantize_per_tensor(torch.randn(5), 0.1, 3, torch.quint8)
    assert quantized.Dropout(0.9).train()(x) is x


def test_from_a_float_module():
    for layer in (quantized.Dropout.from_float(nn.Dropout(0.3, inplace=True)),
                  quantized.Dropout.from_reference(nn.Dropout(0.3, inplace=True), 0.1, 3)):
        assert (layer.p, layer.inplace) == (0.3, True) and isinstance(layer, nn.Dropout)
        assert repr(layer) == "QuantizedDropout(p=0.3, inplace=True)"
