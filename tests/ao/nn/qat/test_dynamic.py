"""A linear map that trains with a rounded weight, for what is quantised as it comes."""
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.ao.nn import qat
from flambeau.ao.nn.quantized import dynamic
from flambeau.ao.quantization import default_dynamic_qat_qconfig, default_qat_qconfig


def test_what_watches_must_not_remember():
    assert isinstance(qat.dynamic.Linear(2, 3, qconfig=default_dynamic_qat_qconfig), qat.Linear)
    with pytest.raises(ValueError, match="Dynamic QAT requires a memoryless observer"):
        qat.dynamic.Linear(2, 3, qconfig=default_qat_qconfig)


def test_from_float_to_integers():
    module = nn.Linear(4, 3)
    module.qconfig = default_dynamic_qat_qconfig
    layer = qat.dynamic.Linear.from_float(module)
    x = torch.rand(2, 4)
    trained = layer(x)
    torch.testing.assert_close(dynamic.Linear.from_float(layer)(x), trained, atol=0.03, rtol=0)
    assert type(layer.to_float()) is nn.Linear
