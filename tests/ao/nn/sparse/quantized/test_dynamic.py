"""Linear maps with blocks of zeros that quantise what comes in."""
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.ao.nn.sparse.quantized import dynamic
from flambeau.ao.quantization import default_dynamic_qconfig


def from_float(module):
    try:
        return dynamic.Linear.from_float(module)
    except RuntimeError as error:               # PyTorch has it for one engine
        pytest.skip(str(error)[:60])


def test_from_a_float_module():
    module = nn.Linear(8, 4)
    module.weight.data[:, :4] = 0
    module.qconfig = default_dynamic_qconfig
    module.sparse_params = {"sparse_block_shape": (1, 4)}
    layer = from_float(module)
    assert layer._get_name() == "SparseQuantizedDynamicLinear"
    assert not layer.weight().dequantize()[:, :4].any()
    assert (layer.in_features, layer.out_features) == (8, 4)


def test_refusals():
    with pytest.raises(NotImplementedError, match="Only QINT8 is supported for Sparse Quantized"):
        dynamic.Linear(4, 4, 1, 4, dtype=torch.float16)
