"""Steps that quantise and dequantise, and pooling."""
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.ao.nn import quantized
from flambeau.ao.quantization import DeQuantStub, QuantStub, default_observer


def test_quantise_and_back():
    x = torch.tensor([[-1.0, 0.26], [0.24, 200.0]])
    q = quantized.Quantize(0.5, 3, torch.quint8)(x)
    assert q.int_repr().tolist() == [[1, 4], [3, 255]]
    assert quantized.DeQuantize()(q).tolist() == [[-1.0, 0.5], [0.0, 126.0]]


def test_state_and_printed_form():
    step = quantized.Quantize(0.5, 3, torch.qint8)
    assert {k: v.tolist() for k, v in step.state_dict().items()} == {
        "scale": [0.5], "zero_point": [3]}
    assert repr(step) == "Quantize(scale=tensor([0.5000]), zero_point=tensor([3]), " \
        "dtype=torch.qint8)"
    other = quantized.Quantize(1.0, 0, torch.qint8)
    other.load_state_dict(step.state_dict())
    assert other(torch.ones(1)).int_repr().tolist() == [5]
    assert repr(quantized.DeQuantize()) == "DeQuantize()"


def test_from_stubs():
    stub = QuantStub()
    stub.activation_post_process = default_observer()
    stub.activation_post_process(torch.tensor([-1.0, 1.0]))
    step = quantized.Quantize.from_float(stub)
    scale, zero = stub.activation_post_process.calculate_qparams()
    assert (step.scale, step.zero_point, step.dtype) == (scale, zero, torch.quint8)
    assert isinstance(quantized.DeQuantize.from_float(DeQuantStub()), quantized.DeQuantize)


@pytest.mark.parametrize("options", [{}, {"stride": 1, "padding": 1}, {"ceil_mode": True}])
def test_max_pool(options):
    q = torch.quantize_per_tensor(torch.randn(1, 2, 5, 5), 0.1, 20, torch.quint8)
    found = quantized.MaxPool2d(2, **options)(q)
    assert torch.equal(found.dequantize(), nn.MaxPool2d(2, **options)(q.dequantize()))
    assert found.is_quantized and repr(quantized.MaxPool2d(2)) == repr(nn.MaxPool2d(2))
