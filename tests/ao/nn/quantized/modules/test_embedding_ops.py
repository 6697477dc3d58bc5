"""Embeddings with tables of small integers."""
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.ao.nn import quantized
from flambeau.ao.quantization import (
    default_qconfig,
    float_qparams_weight_only_qconfig,
    float_qparams_weight_only_qconfig_4bit,
)

QCONFIGS = {torch.quint8: float_qparams_weight_only_qconfig,
            torch.quint4x2: float_qparams_weight_only_qconfig_4bit}


def table(kind, dtype=torch.quint8, **options):
    module = getattr(nn, kind)(6, 4, **options)
    module.qconfig = QCONFIGS[dtype]
    return module, getattr(quantized, kind).from_float(module)


def test_rows_are_those_that_integers_stand_for():
    module, layer = table("Embedding")
    indices = torch.tensor([[0, 5], [5, 2]])
    torch.testing.assert_close(layer(indices), layer.weight().dequantize()[indices])
    spans = module.weight.detach().amax(1) - module.weight.detach().amin(1)
    assert ((layer.weight().dequantize() - module.weight.detach()).abs()
            <= spans[:, None] / 255).all()
    assert layer.weight().q_per_channel_axis() == 0


@pytest.mark.parametrize("dtype", QCONFIGS)
def test_sums_of_rows(dtype):
    _, layer = table("EmbeddingBag", dtype, mode="sum")
    indices, offsets = torch.tensor([1, 5, 5, 0]), torch.tensor([0, 3])
    rows = layer.weight().dequantize() if dtype is torch.quint8 else layer(
        torch.arange(6), torch.arange(6))
    torch.testing.assert_close(layer(indices, offsets), torch.stack(
        [rows[1] + 2 * rows[5], rows[0]]))
    weights = torch.tensor([1.0, 2.0, -1.0, 3.0])
    torch.testing.assert_close(layer(indices, offsets, weights), torch.stack(
        [rows[1] + rows[5], 3 * rows[0]]))


def test_the_last_offset_may_be_included():
    _, layer = table("EmbeddingBag", mode="sum", include_last_offset=True)
    found = layer(torch.tensor([1, 2, 3]), torch.tensor([0, 1, 3]))
    assert found.shape == (2, 4)
    torch.testing.assert_close(found[1], layer.weight().dequantize()[2:4].sum(0))


def test_state_and_printed_form():
    _, layer = table("Embedding")
    assert repr(layer) == ("QuantizedEmbedding(num_embeddings=6, embedding_dim=4, "
                           "dtype=torch.quint8, "
                           "qscheme=torch.per_channel_affine_float_qparams)")
    state = layer.state_dict()
    assert list(state) == ["_packed_params.dtype", "_packed_params._packed_weight"]
    other = quantized.Embedding(6, 4)
    other.load_state_dict(state)
    assert torch.equal(other(torch.arange(6)), layer(torch.arange(6)))


def test_refusals():
    with pytest.raises(NotImplementedError, match="Unsupported dtype on quantized embedding!"):
        quantized.Embedding(2, 2, dtype=torch.qint8)
    with pytest.raises(AssertionError, match="Shape of weight does not match"):
        quantized.Embedding(2, 2, _weight=torch.zeros(3, 2))
    module = nn.Embedding(2, 2)
    module.qconfig = default_qconfig
    with pytest.raises(AssertionError, match="Embedding quantization is only supported with "
                                             "float_qparams_weight_only_qconfig"):
        quantized.Embedding.from_float(module)
    with pytest.raises(AssertionError, match=r"nnq.Embedding.from_float only works for Embedding"):
        quantized.Embedding.from_float(nn.Linear(2, 2))
