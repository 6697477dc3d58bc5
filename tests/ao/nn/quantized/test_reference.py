"""Float modules that compute with what quantised weights stand for, and what is made of them."""
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.ao.nn import intrinsic, quantized
from flambeau.ao.nn.intrinsic import quantized as fused
from flambeau.ao.nn.quantized import dynamic, reference

QPARAMS = {"qscheme": torch.per_tensor_affine, "dtype": torch.qint8, "scale": 0.02, "zero_point": 0}


DECOMPOSED = {"is_decomposed": False}


def rounded(weight):
    return torch.quantize_per_tensor(weight.detach(), 0.02, 0, torch.qint8)


def quantised(*shape):
    return torch.quantize_per_tensor(torch.rand(shape), 0.01, 3, torch.quint8)


@pytest.mark.parametrize("name, arguments, shape", [
    ("Linear", (4, 3), (2, 4)), ("Conv1d", (2, 3, 2), (1, 2, 5)),
    ("Conv2d", (2, 3, 2), (1, 2, 5, 5)), ("ConvTranspose2d", (2, 3, 2), (1, 2, 5, 5))])
def test_weights_are_rounded_and_taken_over(name, arguments, shape):
    float_module = getattr(nn, name)(*arguments)
    layer = getattr(reference, name).from_float(float_module, QPARAMS)
    assert torch.equal(layer.get_quantized_weight().int_repr(),
                       rounded(float_module.weight).int_repr())
    float_module.weight.data = rounded(float_module.weight).dequantize()
    x = quantised(*shape)
    torch.testing.assert_close(layer(x.dequantize()), float_module(x.dequantize()))
    lowered = getattr(quantized, name).from_reference(layer, 0.05, 7)
    assert torch.equal(lowered.weight().int_repr(), layer.get_quantized_weight().int_repr())
    torch.testing.assert_close(lowered(x).dequantize(), float_module(x.dequantize()).clamp(
        -0.35, 0.05 * 248), atol=0.03, rtol=0)


@pytest.mark.parametrize("kind, after", [
    ("LinearReLU", nn.ReLU()), ("LinearTanh", nn.Tanh()), ("LinearLeakyReLU", nn.LeakyReLU(0.3))])
def test_rows_become_one_quantised_module(kind, after):
    row = getattr(intrinsic, kind)(nn.Linear(4, 3), after)
    row[0] = reference.Linear.from_float(row[0], QPARAMS)
    layer = getattr(fused, kind).from_reference(row, 0.01, 100)
    x = quantised(2, 4)
    torch.testing.assert_close(layer(x).dequantize(), row(x.dequantize()).clamp(-1, 1.55),
                               atol=0.02, rtol=0)


def test_rows_that_quantise_what_comes_in():
    row = intrinsic.LinearReLU(nn.Linear(4, 3), nn.ReLU())
    row[0] = reference.Linear.from_float(row[0], QPARAMS)
    for made in (fused.dynamic.LinearReLU.from_reference(row),
                 dynamic.Linear.from_reference(row[0])):
        x = torch.rand(2, 4)
        wanted = row(x) if "ReLU" in type(made).__name__ else row[0](x)
        torch.testing.assert_close(made(x), wanted, atol=0.05, rtol=0)


@pytest.mark.parametrize("name, options", [
    ("LSTM", {"num_layers": 2, "bidirectional": True}), ("GRU", {"batch_first": True})])
def test_networks_by_way_of_their_weights(name, options):
    float_module = getattr(nn, name)(3, 4, **options)
    qparams = {n: QPARAMS for n in float_module._flat_weights_names if n.startswith("weight")}
    qparams |= DECOMPOSED
    network = getattr(reference, name).from_float(float_module, qparams)
    weights = network.get_quantized_weight_bias_dict()
    assert list(weights) == float_module._flat_weights_names
    for found, (key, kept) in zip(network.get_flat_weights(), weights.items()):
        wanted = kept.dequantize() if key.startswith("weight") else kept
        assert torch.equal(found, wanted)
    made = getattr(dynamic, name).from_reference(network)
    x = torch.rand(5, 2, 3)
    torch.testing.assert_close(made(x)[0], network(x)[0].detach(), atol=0.06, rtol=0)
    with pytest.raises(RuntimeError, match="input must have 3 dimensions, got 2"):
        made(x[0])
    state = torch.zeros(1, 1, 4)
    with pytest.raises(RuntimeError, match=r"size \(\d, \d, 4\), got \[1, 1, 4\]"):
        made(x, (state, state) if name == "LSTM" else state)


@pytest.mark.parametrize("name", ["RNNCell", "LSTMCell", "GRUCell"])
def test_cells_by_way_of_their_weights(name):
    qparams = dict.fromkeys(("weight_ih", "weight_hh"), QPARAMS) | DECOMPOSED
    cell = getattr(reference, name).from_float(getattr(nn, name)(3, 4), qparams)
    assert torch.equal(cell.get_weight_ih(), cell.get_quantized_weight_ih().dequantize())
    assert torch.equal(cell.get_weight_hh(), cell.get_quantized_weight_hh().dequantize())
    made = getattr(dynamic, name).from_reference(cell)
    x = torch.rand(2, 3)
    found, wanted = made(x), cell(x)
    if name != "LSTMCell":
        found, wanted = (found,), (wanted,)
    for a, b in zip(found, wanted):
        torch.testing.assert_close(a, b.detach(), atol=0.05, rtol=0)
    with pytest.raises(RuntimeError, match="inconsistent input_size: got 2, expected 3"):
        made(x[:, :2])


def test_parameters_are_those_of_the_float_modules():
    with pytest.raises(TypeError, match=r"missing a? ?.*required"):
        reference.Conv2d(1, 2)
    assert reference.Linear(2, 3, False).bias is None
    with pytest.raises(TypeError, match="bias"):
        reference.Linear(2, 3, bias=False)
