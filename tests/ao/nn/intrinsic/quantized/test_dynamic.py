"""A linear map with a ReLU that quantises what comes in."""
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.ao.nn import intrinsic
from flambeau.ao.nn.intrinsic.quantized import dynamic
from flambeau.ao.quantization import default_dynamic_qconfig, float16_dynamic_qconfig


@pytest.mark.parametrize("qconfig, tolerance", [(default_dynamic_qconfig, 0.05),
                                                (float16_dynamic_qconfig, 1e-3)])
def test_it_computes_what_the_row_computes(qconfig, tolerance):
    row = intrinsic.LinearReLU(nn.Linear(5, 4), nn.ReLU())
    row.qconfig = row[0].qconfig = qconfig
    layer = dynamic.LinearReLU.from_float(row)
    x = torch.randn(3, 2, 5).clamp(-2, 2)
    found = layer(x)
    assert found.dtype is torch.float32 and (found >= 0).all()
    torch.testing.assert_close(found, row(x).detach(), atol=tolerance, rtol=0)


def test_printed_form_and_state():
    layer = dynamic.LinearReLU(3, 2)
    assert repr(layer) == ("DynamicQuantizedLinearReLU(in_features=3, out_features=2, "
                           "dtype=torch.qint8, qscheme=torch.per_tensor_affine)")
    other = dynamic.LinearReLU(3, 2)
    layer.set_weight_bias(torch.quantize_per_tensor(torch.randn(2, 3), 0.1, 0, torch.qint8),
                          torch.randn(2))
    other.load_state_dict(layer.state_dict())
    x = torch.randn(4, 3)
    assert torch.equal(other(x), layer(x))


def test_other_modules_are_refused():
    with pytest.raises(AssertionError, match="from_float only works for"):
        dynamic.LinearReLU.from_float(nn.ReLU())
