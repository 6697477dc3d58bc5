"""An LSTM made of modules that can be observed."""
import warnings

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.ao.nn import quantizable
from flambeau.ao.quantization import default_qconfig


@pytest.mark.parametrize("split_gates", [False, True])
@pytest.mark.parametrize("options", [
    {}, {"bias": False}, {"num_layers": 2}, {"bidirectional": True, "num_layers": 2},
    {"batch_first": True}])
def test_it_computes_what_the_float_module_computes(options, split_gates):
    module = nn.LSTM(3, 4, **options).eval()
    module.qconfig = default_qconfig
    layer = quantizable.LSTM.from_float(module, split_gates=split_gates)
    x = torch.randn(5, 2, 3)
    batch = 5 if "batch_first" in options else 2
    rows = module.num_layers * (2 if module.bidirectional else 1)
    state = (torch.randn(rows, batch, 4), torch.randn(rows, batch, 4))
    for given in ((), (state,)):
        (y, (h, c)), (wanted, (wanted_h, wanted_c)) = layer(x, *given), module(x, *given)
        torch.testing.assert_close(y, wanted)
        torch.testing.assert_close(h, wanted_h)
        torch.testing.assert_close(c, wanted_c)


@pytest.mark.parametrize("split_gates", [False, True])
def test_one_step(split_gates):
    cell = nn.LSTMCell(3, 4)
    cell.qconfig = default_qconfig
    step = quantizable.LSTMCell.from_float(cell, split_gates=split_gates)
    x, h, c = torch.randn(2, 3), torch.randn(2, 4), torch.randn(2, 4)
    for found, wanted in zip(step(x, (h, c)), cell(x, (h, c))):
        torch.testing.assert_close(found, wanted)
    torch.testing.assert_close(step(x)[0], cell(x)[0])
    assert step.hgates is not None and step._get_name() == "QuantizableLSTMCell"
    with pytest.raises(AssertionError):
        quantizable.LSTMCell.from_float(nn.LSTMCell(3, 4))


def test_states_to_begin_with():
    cell = quantizable.LSTMCell(3, 4)
    h, c = cell.initialize_hidden(2)
    assert h.shape == c.shape == (2, 4) and not h.any() and not h.is_quantized
    cell.initial_hidden_state_qparams = (0.5, 3)
    h, c = cell.initialize_hidden(2, True)
    assert (h.q_scale(), h.q_zero_point(), h.dtype) == (0.5, 3, torch.quint8)
    assert (c.q_scale(), c.q_zero_point()) == (1.0, 0) and not h.dequantize().any()


def test_keys_of_the_state():
    assert list(quantizable.LSTM(1, 1).state_dict()) == [
        f"layers.0.layer_fw.cell.{gates}.{name}" for gates in ("igates", "hgates")
        for name in ("weight", "bias")]
    assert len(quantizable.LSTM(1, 1, split_gates=True).state_dict()) == 16
    assert "layers.1.layer_bw.cell.hgates.bias" in quantizable.LSTM(
        1, 1, 2, bidirectional=True).state_dict()


def test_dropout_is_checked_and_left_out():
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        quantizable.LSTM(1, 1, 2, dropout=0.5)
    assert "dropout option for quantizable LSTM is ignored" in str(found[0].message)
    for value in (True, 1.5, -0.1):
        with pytest.raises(ValueError, match=r"dropout should be a number in range \[0, 1\]"):
            quantizable.LSTM(1, 1, dropout=value)


def test_refusals():
    with pytest.raises(AssertionError):
        quantizable.LSTM.from_float(nn.GRU(1, 1))
    with pytest.raises(AssertionError):
        quantizable.LSTM.from_float(nn.LSTM(1, 1))
    with pytest.raises(NotImplementedError, match="convert a non-quantizable LSTM"):
        quantizable.LSTM.from_observed(nn.LSTM(1, 1))
