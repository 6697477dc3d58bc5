"""Modules that quantise what comes in."""
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.ao.nn.quantized import dynamic
from flambeau.ao.quantization import default_dynamic_qconfig, float16_dynamic_qconfig


def pair(name, *sizes, qconfig=default_dynamic_qconfig, **options):
    module = getattr(nn, name)(*sizes, **options)
    module.qconfig = qconfig
    return module, getattr(dynamic, name).from_float(module)


@pytest.mark.parametrize("name, sizes, shape", [
    ("Linear", (4, 3), (2, 5, 4)), ("Conv1d", (2, 3, 2), (1, 2, 5)),
    ("Conv2d", (2, 4, 3, 2, 1, 1, 2, False), (1, 2, 5, 5)), ("Conv3d", (1, 2, 2), (1, 1, 3, 3, 3))])
def test_floats_come_in_and_go_out(name, sizes, shape):
    module, layer = pair(name, *sizes)
    x = torch.rand(shape) * 6 - 3           # PyTorch cuts results to the range of the input
    y = layer(x)
    assert y.dtype is torch.float32 and not layer.weight().dequantize().requires_grad
    torch.testing.assert_close(y, module(x).detach(), atol=0.2, rtol=0)
    other = type(layer)(*sizes[:2] if name == "Linear" else sizes)
    other.load_state_dict(layer.state_dict())
    assert torch.equal(other(x), y)


@pytest.mark.parametrize("qconfig, tolerance", [(default_dynamic_qconfig, 0.06),
                                                (float16_dynamic_qconfig, 2e-3)])
@pytest.mark.parametrize("name", ["LSTM", "GRU"])
@pytest.mark.parametrize("options", [{}, {"num_layers": 2, "bidirectional": True},
                                     {"batch_first": True}])
def test_networks(name, options, qconfig, tolerance):
    module, layer = pair(name, 3, 4, qconfig=qconfig, **options)
    x = torch.rand(2, 5, 3)
    found, wanted = layer(x), module(x)
    torch.testing.assert_close(found[0], wanted[0].detach(), atol=tolerance, rtol=0)
    if name == "GRU":
        torch.testing.assert_close(found[1], wanted[1].detach(), atol=tolerance, rtol=0)
    assert layer.get_weight().keys() == {n for n, _ in module.named_parameters() if "weight" in n}


@pytest.mark.parametrize("name, options", [
    ("RNNCell", {}), ("RNNCell", {"nonlinearity": "relu"}), ("LSTMCell", {}),
    ("GRUCell", {})])
def test_cells(name, options):
    module, layer = pair(name, 3, 4, **options)
    x, h = torch.rand(2, 3), torch.rand(2, 4)
    state = (h, h / 2) if name == "LSTMCell" else h
    for given in ((), (state,)):
        found, wanted = layer(x, *given), module(x, *given)
        if name != "LSTMCell":
            found, wanted = (found,), (wanted,)
        for a, b in zip(found, wanted):
            torch.testing.assert_close(a, b.detach(), atol=0.05, rtol=0)
    other = type(layer)(3, 4, **options)
    other.load_state_dict(layer.state_dict())
    assert list(layer.state_dict()) == ["_packed_weight_ih", "_packed_weight_hh"]


def test_messages_of_cells():
    cell = dynamic.LSTMCell(3, 4)
    x, h = torch.zeros(2, 3), torch.zeros(2, 4)
    with pytest.raises(RuntimeError, match=r"Input batch size 2 doesn't match hidden\[1\] batch "
                                           "size 1"):
        cell(x, (h, h[:1]))
    with pytest.raises(RuntimeError, match=r"hidden0? ?has inconsistent hidden_size: got 3, "
                                           "expected 4"):
        dynamic.GRUCell(3, 4)(x, x)
    with pytest.raises(AssertionError, match="qconfig"):
        dynamic.LSTMCell.from_float(nn.LSTMCell(3, 4))


def test_a_qconfig_is_needed():
    with pytest.raises(AssertionError, match="Input float module must have qconfig defined"):
        dynamic.Linear.from_float(nn.Linear(2, 3))
    with pytest.raises(AssertionError, match=r"from_float only works for one of.*got.*ReLU"):
        dynamic.Linear.from_float(nn.ReLU())


def test_printed_forms():
    assert repr(dynamic.GRUCell(3, 4, bias=False)) == "DynamicQuantizedGRUCell(3, 4, bias=False)"
    assert repr(dynamic.RNNCell(3, 4, nonlinearity="relu")) == \
        "DynamicQuantizedRNNCell(3, 4, nonlinearity=relu)"
    assert repr(dynamic.Linear(2, 3, dtype=torch.float16)) == \
        "DynamicQuantizedLinear(in_features=2, out_features=3, dtype=torch.float16)"
    assert repr(dynamic.Conv2d(1, 2, 3)) == \
        "DynamicQuantizedConv2d(1, 2, kernel_size=(3, 3), stride=(1, 1), scale=1.0, zero_point=0)"
