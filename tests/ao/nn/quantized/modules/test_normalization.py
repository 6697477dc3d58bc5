"""Normalisation of quantised tensors by their own statistics."""
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.ao.nn import quantized

MODULES = {"LayerNorm": (lambda: nn.LayerNorm((4, 5)), (3, 4, 5)),
           "GroupNorm": (lambda: nn.GroupNorm(2, 4), (2, 4, 5)),
           "InstanceNorm1d": (lambda: nn.InstanceNorm1d(3, affine=True), (2, 3, 6)),
           "InstanceNorm2d": (lambda: nn.InstanceNorm2d(3, affine=True), (2, 3, 4, 4)),
           "InstanceNorm3d": (lambda: nn.InstanceNorm3d(2, affine=True), (2, 2, 3, 3, 3))}


def converted(module, kind):
    module.activation_post_process = torch.ao.quantization.default_observer(reduce_range=False)
    module.activation_post_process(torch.tensor([-6.0, 6.0]))
    return kind.from_float(module)


@pytest.mark.parametrize("name", MODULES)
def test_the_float_function_rounded(name):
    build, shape = MODULES[name]
    module = build()
    module.weight.data.uniform_(0.5, 1.5)
    module.bias.data.uniform_(-1, 1)
    layer = converted(module, getattr(quantized, name))
    x = torch.quantize_per_tensor(torch.randn(shape), 0.03, 120, torch.quint8)
    found = layer(x)
    torch.testing.assert_close(found.dequantize(), module(x.dequantize()).detach(),
                               atol=0.51 * found.q_scale(), rtol=0)


@pytest.mark.parametrize("name", MODULES)
def test_state_and_printed_form(name):
    module = MODULES[name][0]()
    layer = converted(module, getattr(quantized, name))
    assert list(layer.state_dict()) == ["weight", "bias", "scale", "zero_point"]
    assert layer.weight is module.weight
    assert repr(layer).startswith(f"Quantized{name}(")


@pytest.mark.parametrize("name", ["LayerNorm", "InstanceNorm1d"])
def test_with_a_scale_given(name):
    module = MODULES[name][0]()
    layer = getattr(quantized, name).from_reference(module, 0.05, 100)
    assert (round(layer.scale.item(), 6), layer.zero_point.item()) == (0.05, 100)
    assert layer.eps == module.eps


def test_from_what_was_observed():
    module = nn.LayerNorm(4, eps=0.1)
    layer = converted(module, quantized.LayerNorm)
    assert layer.eps == 0.1
    assert layer.scale == module.activation_post_process.calculate_qparams()[0]
