"""Bags of embeddings: padding, places out of range, and bags with nothing in them."""
import pytest
from layer_tests import LayerTests
from layers import Cases

import flambeau
from flambeau.nn import functional as F

MODES = ("sum", "mean", "max")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("indices, offsets", [([0, 0], [0]), ([], [0, 0]), ([], [])])
def test_bags_with_nothing_in_them_have_gradients_of_zero(mode, indices, offsets):
    weight = flambeau.randn(4, 3, requires_grad=True)
    result = F.embedding_bag(flambeau.tensor(indices, dtype=flambeau.int64), weight,
                             flambeau.tensor(offsets, dtype=flambeau.int64), mode=mode,
                             padding_idx=0)
    assert result.shape == (len(offsets), 3) and not result.any()
    result.sum().backward()
    assert not weight.grad.any()


@pytest.mark.parametrize("wrong", [-1, 5])
@pytest.mark.parametrize("mode", MODES)
def test_places_out_of_range(mode, wrong):
    said = rf"embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be {wrong}"
    fast = f"Index 1 of input takes value {wrong} which is not in the valid range"
    for dtype, padding_idx in ((flambeau.float32, None), (flambeau.float64, None),
                               (flambeau.float32, 0)):
        plain = mode != "max" and dtype is flambeau.float32 and padding_idx is None
        with pytest.raises(RuntimeError, match=fast if plain else said):
            F.embedding_bag(flambeau.tensor([0, wrong]), flambeau.ones(4, 2, dtype=dtype),
                            flambeau.tensor([0]), mode=mode, padding_idx=padding_idx)


def test_order_of_checks():
    at, table, starts = flambeau.zeros(2, dtype=flambeau.int64), flambeau.ones(2, 2, 2), \
        flambeau.zeros(2, dtype=flambeau.int64)
    said = "weight has to be a 2D Tensor, but got Tensor of dimension 3"
    for options in ({}, {"max_norm": 1.0}, {"mode": "max", "sparse": True}, {"mode": "none"}):
        with pytest.raises(ValueError, match=said):
            F.embedding_bag(at, table, starts, **options)
    with pytest.raises(RuntimeError, match=said):
        flambeau._embedding_bag(table, at, starts)
    with pytest.raises(ValueError, match="must have the same shape as the input"):
        F.embedding_bag(at, table, starts, per_sample_weights=flambeau.ones(3))


# ---- layers -------------------------------------------------------------------------------------

cases = Cases()
for _mode in ("sum", "mean", "max"):
    @cases(f"embedding_bag_{_mode}")
    def _(torch, make, mode=_mode):
        offsets = torch.tensor([0, 2, 2, 5])
        return torch.nn.functional.embedding_bag(
            make.integers(6, 7), make(6, 3, apart=True), offsets, mode=mode, padding_idx=2)


@cases("embedding_bag_weights")
def _(torch, make):
    return torch.nn.functional.embedding_bag(make.integers(6, 3, 2), make(6, 3), mode="sum",
                                             per_sample_weights=make(3, 2))


class TestLayers(LayerTests):
    cases = cases
