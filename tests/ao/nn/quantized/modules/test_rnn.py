"""LSTM and attention whose steps are quantised modules."""
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.ao.nn import quantizable, quantized
from flambeau.ao.quantization import default_qconfig


def spread(row):
    """Of a range that has zero in it."""
    return (row.max().clamp(min=0) - row.min().clamp(max=0)).item()


def calibrated(module, kind, *calls):
    module.qconfig = default_qconfig
    layer = getattr(quantizable, kind).from_float(module.eval())
    wanted = [layer(*call) for call in calls]
    return layer, wanted[-1]


def test_an_lstm():
    x = torch.rand(4, 2, 3)
    observed, (wanted, _) = calibrated(nn.LSTM(3, 4), "LSTM", (2 * x,), (x,))
    layer = quantized.LSTM.from_observed(observed)
    q = torch.quantize_per_tensor(x, 0.01, 0, torch.quint8)
    y, (h, c) = layer(q)
    assert y.is_quantized and h.is_quantized and h.shape == c.shape == (1, 2, 4)
    torch.testing.assert_close(y.dequantize(), wanted.detach(), atol=0.08, rtol=0)
    assert type(layer) is quantized.LSTM and layer._get_name() == "QuantizedLSTM"
    assert isinstance(layer.layers[0].layer_fw.cell.igates, quantized.Linear)


def test_bias_rows_of_attention_are_quantised():
    x = torch.rand(3, 1, 4)
    module = nn.MultiheadAttention(4, 2, add_bias_kv=True)
    observed, _ = calibrated(module, "MultiheadAttention", (x, x, x))
    layer = quantized.MultiheadAttention.from_observed(observed)
    assert layer.bias_k.dtype is torch.quint8
    assert layer.bias_k.q_scale() == pytest.approx(spread(module.bias_k) / 255)
    q = torch.quantize_per_tensor(x, 0.01, 0, torch.quint8)
    y, weights = layer(q, q, q)
    assert y.shape == (3, 1, 4) and weights.shape == (1, 3, 4)


@pytest.mark.parametrize("name, module, short", [
    ("LSTM", nn.LSTM(2, 2), "LSTM"), ("MultiheadAttention", nn.MultiheadAttention(2, 1), "MHA")])
def test_there_has_to_be_an_observed_module_between(name, module, short):
    kind = getattr(quantized, name)
    with pytest.raises(NotImplementedError, match=f"convert a non-observed {short} module"):
        kind.from_float(module)
