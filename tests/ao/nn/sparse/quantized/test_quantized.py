"""Quantised linear maps whose weights have blocks of zeros."""
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.ao.nn.sparse import quantized
from flambeau.ao.quantization import default_qconfig


def from_float(module):
    try:
        return quantized.Linear.from_float(module)
    except RuntimeError as error:               # PyTorch has it for one engine
        pytest.skip(str(error)[:60])


def observed():
    module = nn.Linear(8, 4)
    module.weight.data[:, :4] = 0
    module.qconfig = default_qconfig
    module.activation_post_process = default_qconfig.activation()
    module.activation_post_process(torch.tensor([-3.0, 3.0]))
    return module


def test_from_a_float_module():
    module = observed()
    module.sparse_params = {"sparse_block_shape": (1, 4)}
    layer = from_float(module)
    assert (layer.row_block_size, layer.col_block_size) == (1, 4)
    assert layer._get_name() == "SparseQuantizedLinear"
    assert not layer.weight().dequantize()[:, :4].any()
    torch.testing.assert_close(layer.weight().dequantize(), module.weight.detach(), atol=0.01,
                               rtol=0)


def test_refusals():
    with pytest.raises(AssertionError, match="Expecting the Linear to have `sparse_params`"):
        quantized.Linear.from_float(observed())
    with pytest.raises(NotImplementedError,
                       match="Only QINT8 is supported for Sparse Quantized Linear"):
        quantized.Linear(4, 4, 1, 4, dtype=torch.float16)
