"""How weights become integers."""
import pytest

import flambeau as torch
from flambeau.ao.nn.quantized.modules.utils import WeightedQuantizedModule, _quantize_weight
from flambeau.ao.quantization import (
    default_per_channel_weight_observer,
    default_weight_observer,
    float_qparams_weight_only_qconfig,
)

W = torch.tensor([[-1.0, 0.5, 0.0], [127.0, -12.7, 64.0]])


def quantised(make):
    observer = make()
    observer(W)
    return _quantize_weight(W, observer)


def test_one_scale():
    q = quantised(default_weight_observer)
    assert q.qscheme() is torch.per_tensor_affine and q.dtype is torch.qint8
    assert q.q_zero_point() == 0 and q.q_scale() == pytest.approx(127 / 127.5)
    assert q.int_repr().tolist() == [[-1, 1, 0], [127, -13, 64]]


def test_a_scale_for_each_row():
    q = quantised(default_per_channel_weight_observer)
    assert q.q_per_channel_axis() == 0 and q.q_per_channel_scales().dtype is torch.float64
    torch.testing.assert_close(q.q_per_channel_scales(), torch.tensor(
        [2 / 255, 254 / 255], dtype=torch.float64))
    assert q.int_repr().tolist() == [[-127, 64, 0], [127, -13, 64]]


def test_scales_of_rows_with_float_zero_points():
    q = quantised(float_qparams_weight_only_qconfig.weight)
    assert q.qscheme() is torch.per_channel_affine_float_qparams and q.dtype is torch.quint8
    assert q.q_per_channel_zero_points().dtype is torch.float32
    torch.testing.assert_close(q.dequantize(), W, atol=0.3, rtol=0)


def test_other_schemes_are_refused():
    observer = default_weight_observer()
    observer(W)
    observer.qscheme = "diagonal"
    with pytest.raises((ValueError, AssertionError), match="scheme"):
        _quantize_weight(W, observer)


def test_a_kind_has_to_say_how_it_is_made():
    with pytest.raises((NotImplementedError, TypeError, AttributeError)):
        WeightedQuantizedModule.from_reference(torch.nn.Linear(1, 1), 0.1, 3)
