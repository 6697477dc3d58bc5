"""Linear maps with quantised weights."""
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.ao.nn import intrinsic, quantized
from flambeau.ao.nn.intrinsic import quantized as fused
from flambeau.ao.quantization import default_qconfig


def quantised(*shape):
    """Numbers of seven bits: sums of larger ones overflow in some engines."""
    return torch.quantize_per_tensor(torch.rand(shape) * 3 - 1.5, 0.03, 60, torch.quint8)


def converted(module, kind):
    for part in module.modules():
        part.qconfig = default_qconfig
    module.activation_post_process = default_qconfig.activation()
    module.activation_post_process(torch.tensor([-5.0, 5.0]))
    return kind.from_float(module)


@pytest.mark.parametrize("after", [None, nn.ReLU(), nn.Tanh(), nn.LeakyReLU(0.2)])
def test_the_float_function_rounded(after):
    linear = nn.Linear(4, 3)
    name = "Linear" + (type(after).__name__ if after else "")
    module = getattr(intrinsic, name)(linear, after) if after else linear
    layer = converted(module, getattr(fused if after else quantized, name))
    x = quantised(2, 5, 4)
    linear.weight.data = layer.weight().dequantize()
    try:
        found = layer(x)
    except RuntimeError as error:               # PyTorch has the two for an engine of its own
        pytest.skip(str(error)[:60])
    torch.testing.assert_close(found.dequantize(), module(x.dequantize()).detach().clamp(-5, 5),
                               atol=1.5 * found.q_scale(), rtol=0)
    assert layer._get_name() == f"Quantized{name}"


def test_state_goes_over():
    layer, other = quantized.Linear(4, 3), quantized.Linear(4, 3)
    layer.set_weight_bias(torch.quantize_per_tensor(torch.randn(3, 4), 0.05, 0, torch.qint8),
                          torch.randn(3))
    layer.scale, layer.zero_point = 0.1, 50
    state = layer.state_dict()
    assert list(state) == ["scale", "zero_point", "_packed_params.dtype",
                           "_packed_params._packed_params"]
    other.load_state_dict(state)
    x = quantised(2, 4)
    assert torch.equal(other(x).int_repr(), layer(x).int_repr())
    assert torch.equal(other.bias(), layer.bias())


def test_printed_form():
    assert repr(quantized.Linear(4, 3)) == (
        "QuantizedLinear(in_features=4, out_features=3, scale=1.0, zero_point=0, "
        "qscheme=torch.per_tensor_affine)")
    assert repr(fused.LinearLeakyReLU(4, 3, 0.1)).startswith("QuantizedLinearLeakyReLU(")
    assert quantized.Linear(2, 3, bias_=False).bias() is None


def test_what_watches_the_weight_must_give_bytes():
    module = nn.Linear(2, 3)
    module.qconfig = default_qconfig._replace(weight=default_qconfig.activation)
    module.activation_post_process = default_qconfig.activation()
    with pytest.raises(AssertionError, match=r"must have dtype torch.qint8, got torch.quint8"):
        quantized.Linear.from_float(module)


def test_refusals():
    with pytest.raises(RuntimeError, match="Unsupported dtype specified for quantized Linear!"):
        quantized.Linear(2, 3, dtype=torch.quint8)
    with pytest.raises(AssertionError, match=r"nnq.Linear.from_float only works for"):
        quantized.Linear.from_float(nn.ReLU())
